"""Random profiles: loaded, dumped, rendered and given to fio, which must take them as they are."""

import random
from collections.abc import Mapping
from pathlib import Path

from tests.fio.runs import accepted, really_run
from volbench.errors import ProfileError
from volbench.fio.jobs.job_file import parse_jobfile
from volbench.fio.jobs.option_table import shipped_table
from volbench.fio.jobs.render_job import render
from volbench.model.campaign.planned_run import Run, Volume, VolumeKind
from volbench.plan.expansion.expand import Terms, expand
from volbench.plan.profile.load_profile import dump_profile, load_profile

_TABLE = shipped_table()
_MANY = 200
_OPTIONS: Mapping[str, tuple[object, ...]] = {
    "rw": ("read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim"),
    "bs": ("4k", 512, "1m", "8k,32k", "64k", "3k", "4KiB", "0"),
    "bsrange": ("4k-16k", "1k-1k", "8k-4k"),
    "bssplit": ("4k/50:64k/50", "4k/10:8k/", "4k/60:8k/60"),
    "size": ("1m", "256k", "100%", "1g", "0"),
    "io_size": ("512k", "4m"),
    "runtime": ("100ms", "200ms", "1s", 0, "1m"),
    "ramp_time": ("10ms", "1s"),
    "iodepth": (1, 4, 32, 0, "16"),
    "numjobs": (1, 2, 3, 0),
    "ioengine": ("psync", "libaio", "null", "io_uring", "mmap", "sync", "nosuch"),
    "direct": (0, 1, "yes", True),
    "time_based": (1, 0, True),
    "rwmixread": (0, 30, 70, 100, 101),
    "rate_iops": (100, 5000, "1k,2k"),
    "rate": ("1m", "10m,1m"),
    "fsync": (0, 1, 16),
    "fdatasync": (8,),
    "end_fsync": (1,),
    "random_distribution": ("random", "zipf:1.2", "pareto:0.2", "normal:50", "zoned:50/50:50/50"),
    "norandommap": (1,),
    "nrfiles": (1, 2, 8),
    "file_service_type": ("roundrobin", "random", "sequential"),
    "thinktime": ("1ms", 100),
    "thinktime_blocks": (1, 8),
    "percentage_random": (0, 50, 100),
    "blockalign": ("4k", 512),
    "offset": ("64k", 0),
    "offset_increment": ("64k", "10%"),
    "buffer_compress_percentage": (0, 50, 100),
    "refill_buffers": (1,),
    "zero_buffers": (1,),
    "verify": ("crc32c", "md5", "nosuch"),
    "do_verify": (0, 1),
    "latency_target": ("1ms",),
    "latency_percentile": (99,),
    "iodepth_batch": (1, 4),
    "group_reporting": (0, 1),
    "stonewall": (1,),
    "startdelay": ("50ms",),
    "description": ("plain", "with # a comment", "日本", "", "x" * 300),
    "lockmem": ("1m",),
    "randseed": (1, 2**31, 2**64),
    "loops": (1, 2),
    "invalidate": (0, 1),
    "fallocate": ("none", "native", "posix"),
}


def random_profile(chance: random.Random, folder: Path) -> int:
    """Load, dump, expand and render random profiles, and run a short one."""
    sound: list[Run] = []
    for number in range(_MANY):
        text = _profile(chance, number)
        try:
            profile = load_profile(text, path="p.yaml", table=_TABLE)
        except ProfileError:
            continue
        assert load_profile(dump_profile(profile), path="p.yaml", table=_TABLE) == profile, text
        volumes = {
            job.role: Volume(role=job.role, kind=VolumeKind.DIRECTORY, target=str(folder))
            for job in profile.jobs
        }
        for run in expand([profile], volumes, Terms(name="t", seed=chance.getrandbits(31))).runs:
            _check_rendered(run)
            sound.append(run)
    for run in chance.sample(sound, min(4, len(sound))):
        said = accepted(render(run), folder)
        assert not said, f"{said}\n{render(run)}"
    really_run(_brief(chance.choice(sound)), folder)
    return _MANY


def _profile(chance: random.Random, number: int) -> str:
    lines = [f"name: p{number}", f"sample: {chance.choice(('0', '100ms', '1s', '500ms'))}"]
    lines += [f"repeat: {chance.randint(1, 3)}"] if chance.random() < 0.3 else []
    lines += ["defaults: " + _mapping(chance, ["size", "ioengine"], chance.randint(0, 2)), "jobs:"]
    lines += [
        f"  j{n}: {_mapping(chance, ['rw'], chance.randint(0, 6))}"
        for n in range(chance.randint(1, 3))
    ]
    return "\n".join(lines) + "\n"


def _mapping(chance: random.Random, needed: list[str], more: int) -> str:
    names = dict.fromkeys([*needed, *chance.sample(sorted(_OPTIONS), more)])
    pairs = ((name, chance.choice(_OPTIONS[name])) for name in names)
    return "{" + ", ".join(f"{name}: {_yaml(value)}" for name, value in pairs) + "}"


def _yaml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _check_rendered(run: Run) -> None:
    """Check that every option of a run is in its job file, as it was planned."""
    text = render(run)
    lines = set(text.splitlines())
    for section in run.sections:
        for name, value in run.effective(section).items():
            assert {f"{name}={value}", name} & lines, f"{name}={value} is missing:\n{text}"
    parse_jobfile(text, path="j.fio", table=_TABLE, allow_exec=True)


def _brief(run: Run) -> Run:
    """Return a run that lasts 0.1 s and needs neither space nor privileges."""
    options = {"ioengine": "null", "size": str(1 << 20), "runtime": "100ms", "time_based": "1"}
    kept = {"bs", "rwmixread", "iodepth", "numjobs"}
    sections = tuple(
        section.model_copy(
            update={
                "options": {
                    **{k: v for k, v in run.effective(section).items() if k in kept},
                    "rw": "randrw",
                    **options,
                }
            }
        )
        for section in run.sections
    )
    return run.model_copy(update={"sections": sections, "options": {}, "sample_s": 0.0})
