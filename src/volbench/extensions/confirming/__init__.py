"""Confirmation: an alarming workload is measured again before it alarms."""

from volbench.extension import Extension

extension = Extension(
    name="confirming",
    options=dict.fromkeys(
        ("compare", "trend"), "volbench.extensions.confirming.confirm_options:CONFIRM"
    ),
    explain="volbench.extensions.confirming.judgement:explained",
    listeners=("volbench.extensions.confirming.host_speed:calibrated",),
)
