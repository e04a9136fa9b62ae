// CSI driver of the tests' cluster, for one node: volumes are sparse files on loop devices, and so have
// the size that was asked for. It knows snapshots, clones, expansion and raw blocks. Names of volumes and
// snapshots are unique, since sidecars make them of UIDs: they serve as IDs, and each call may be repeated.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const name = "loop.csi.volbench.io"

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	state, socket, node string
}

func (d *driver) volume(id string) string   { return filepath.Join(d.state, "volume-"+filepath.Base(id)) }
func (d *driver) snapshot(id string) string { return filepath.Join(d.state, "snapshot-"+filepath.Base(id)) }

func run(program string, arguments ...string) (string, error) {
	output, err := exec.Command(program, arguments...).CombinedOutput()
	if err != nil {
		return "", status.Errorf(codes.Internal, "%s %s: %v: %s", program, strings.Join(arguments, " "), err, output)
	}
	return strings.TrimSpace(string(output)), nil
}

// Identity

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: name, VendorVersion: "1"}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	service := &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
		Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}}
	expansion := &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
		Type: csi.PluginCapability_VolumeExpansion_ONLINE}}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: service}, {Type: expansion}}}, nil
}

// Controller

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, kind := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_MODIFY_VOLUME,
	} {
		rpc := &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: kind}}
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{Type: rpc})
	}
	return answer, nil
}

func (d *driver) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	file, size := d.volume(request.Name), request.CapacityRange.GetRequiredBytes()
	source := ""
	if snapshot := request.VolumeContentSource.GetSnapshot(); snapshot != nil {
		source = d.snapshot(snapshot.SnapshotId)
	} else if volume := request.VolumeContentSource.GetVolume(); volume != nil {
		source = d.volume(volume.VolumeId)
	}
	if _, err := os.Stat(file); err != nil {
		if source != "" {
			if _, err := os.Stat(source); err != nil {
				return nil, status.Errorf(codes.NotFound, "the source is missing: %v", err)
			}
			if _, err := run("cp", "--sparse=always", source, file+".part"); err != nil {
				return nil, err
			}
		}
		if _, err := run("truncate", "--size", fmt.Sprintf(">%d", size), file+".part"); err != nil {
			return nil, err
		}
		if err := os.Rename(file+".part", file); err != nil {
			return nil, err
		}
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: request.Name, CapacityBytes: size, VolumeContext: request.Parameters,
		ContentSource: request.VolumeContentSource}}, nil
}

func (d *driver) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, os.RemoveAll(d.volume(request.VolumeId))
}

func (d *driver) ControllerPublishVolume(context.Context, *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	return &csi.ControllerPublishVolumeResponse{}, nil
}

func (d *driver) ControllerUnpublishVolume(context.Context, *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (d *driver) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: request.VolumeCapabilities}}, nil
}

func (d *driver) CreateSnapshot(_ context.Context, request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	file := d.snapshot(request.Name)
	if _, err := os.Stat(file); err != nil {
		if _, err := run("sync"); err != nil {
			return nil, err
		}
		if _, err := run("cp", "--sparse=always", d.volume(request.SourceVolumeId), file+".part"); err != nil {
			return nil, err
		}
		if err := os.Rename(file+".part", file); err != nil {
			return nil, err
		}
	}
	found, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId: request.Name, SourceVolumeId: request.SourceVolumeId, SizeBytes: found.Size(),
		CreationTime: timestamppb.New(found.ModTime()), ReadyToUse: true}}, nil
}

func (d *driver) DeleteSnapshot(_ context.Context, request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	return &csi.DeleteSnapshotResponse{}, os.RemoveAll(d.snapshot(request.SnapshotId))
}

func (d *driver) ControllerExpandVolume(_ context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	size := request.CapacityRange.GetRequiredBytes()
	_, err := run("truncate", "--size", fmt.Sprintf(">%d", size), d.volume(request.VolumeId))
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: true}, err
}

// Node

// Volumes of any attributes class are the same: a loop device has no limits.
func (d *driver) ControllerModifyVolume(context.Context, *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	return &csi.ControllerModifyVolumeResponse{}, nil
}

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	answer := &csi.NodeGetCapabilitiesResponse{}
	for _, kind := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
	} {
		rpc := &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: kind}}
		answer.Capabilities = append(answer.Capabilities, &csi.NodeServiceCapability{Type: rpc})
	}
	return answer, nil
}

// The loop device of a volume; empty if it has none.
func (d *driver) loop(id string) (string, error) {
	found, err := run("losetup", "--noheadings", "--output", "NAME", "--associated", d.volume(id))
	return strings.TrimSpace(found), err
}

func isMounted(path string) bool {
	return exec.Command("mountpoint", "--quiet", path).Run() == nil
}

func (d *driver) NodeStageVolume(_ context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	device, err := d.loop(request.VolumeId)
	if err == nil && device == "" {
		device, err = run("losetup", "--find", "--show", d.volume(request.VolumeId))
	}
	if err != nil || request.VolumeCapability.GetBlock() != nil || isMounted(request.StagingTargetPath) {
		return &csi.NodeStageVolumeResponse{}, err
	}
	if exec.Command("blkid", "--probe", device).Run() != nil {
		if _, err := run("mkfs.ext4", "-q", "-m", "0", device); err != nil {
			return nil, err
		}
	}
	if _, err = run("mount", device, request.StagingTargetPath); err == nil {
		_, err = run("resize2fs", device) // a restored volume may be larger than its source
	}
	return &csi.NodeStageVolumeResponse{}, err
}

func (d *driver) NodeUnstageVolume(_ context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if isMounted(request.StagingTargetPath) {
		if _, err := run("umount", request.StagingTargetPath); err != nil {
			return nil, err
		}
	}
	device, err := d.loop(request.VolumeId)
	if err == nil && device != "" {
		_, err = run("losetup", "--detach", device)
	}
	return &csi.NodeUnstageVolumeResponse{}, err
}

func (d *driver) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	source, target := request.StagingTargetPath, request.TargetPath
	if request.VolumeCapability.GetBlock() != nil {
		device, err := d.loop(request.VolumeId)
		if err != nil {
			return nil, err
		}
		source = device
		if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
			return nil, err
		}
		file, err := os.OpenFile(target, os.O_CREATE, 0o660)
		if err != nil {
			return nil, err
		}
		file.Close()
	} else if err := os.MkdirAll(target, 0o750); err != nil {
		return nil, err
	}
	if isMounted(target) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	_, err := run("mount", "--bind", source, target)
	return &csi.NodePublishVolumeResponse{}, err
}

func (d *driver) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	exec.Command("umount", request.TargetPath).Run() // it may be gone already
	return &csi.NodeUnpublishVolumeResponse{}, os.RemoveAll(request.TargetPath)
}

func (d *driver) NodeExpandVolume(_ context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	device, err := d.loop(request.VolumeId)
	if err != nil {
		return nil, err
	}
	if _, err := run("losetup", "--set-capacity", device); err != nil {
		return nil, err
	}
	if request.VolumeCapability.GetBlock() == nil {
		// Without CAP_SYS_RESOURCE, as in many containers, a mounted ext4 keeps its size.
		_, err := run("resize2fs", device)
		if err != nil && !strings.Contains(err.Error(), "Permission denied to resize") {
			return nil, err
		}
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: request.CapacityRange.GetRequiredBytes()}, nil
}

// Registration at the kubelet

func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: "CSIPlugin", Name: name, Endpoint: d.socket, SupportedVersions: []string{"1.0.0"}}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, result *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !result.PluginRegistered {
		fmt.Fprintln(os.Stderr, result.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func serve(path string, register func(*grpc.Server)) {
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer()
	register(server)
	panic(server.Serve(listener))
}

func main() {
	d := &driver{}
	flag.StringVar(&d.state, "state", "", "folder of the volumes")
	flag.StringVar(&d.socket, "socket", "", "socket of the driver")
	flag.StringVar(&d.node, "node", "", "name of the node")
	plugins := flag.String("registry", "", "folder in which the kubelet finds plugins")
	flag.Parse()
	go serve(filepath.Join(*plugins, name+"-reg.sock"), func(server *grpc.Server) {
		registration.RegisterRegistrationServer(server, d)
	})
	serve(d.socket, func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, d)
		csi.RegisterControllerServer(server, d)
		csi.RegisterNodeServer(server, d)
	})
}
