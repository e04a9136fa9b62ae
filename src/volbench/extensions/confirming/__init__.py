"""Confirmation: an alarming workload is measured again before it alarms."""

from volbench.extension import Extension

extension = Extension(
    name="confirming",
    options={
        "compare": "volbench.extensions.confirming.confirm_options:CONFIRM",
        "trend": "volbench.extensions.confirming.confirm_options:CONFIRM",
        "run": "volbench.extensions.confirming.confirm_options:BASELINE",
    },
    explain="volbench.extensions.confirming.judgement:explained",
    listeners=("volbench.extensions.confirming.host_speed:calibrated",),
)
