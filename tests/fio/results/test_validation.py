"""The success test: what went wrong is found, and a normal run raises no alarm."""

from dataclasses import replace
from pathlib import Path

import pytest

from volbench.errors import OutputError
from volbench.fio.results.json_output import parse_output
from volbench.fio.results.validation import Expected, problems_of
from volbench.model.results.result import Direction, RunOutput

CASES = Path(__file__).parents[2] / "cases"
VERSIONS = sorted(path.name for path in CASES.glob("fio-*"))
READ, WRITE, TRIM, SYNC = Direction.READ, Direction.WRITE, Direction.TRIM, Direction.SYNC
GOOD = {
    "randrw-jsonplus": Expected("mix", 1, (READ, WRITE), 1.0),
    "numjobs-separate": Expected("seq", 3, (WRITE,), 1.0),
    "numjobs-grouped": Expected("seq", 1, (READ,), 1.0),
    "logs-averaged": Expected("rw", 1, (READ, WRITE), 2.0),
    "logs-per-io": Expected("w", 1, (WRITE,)),
    "logs-numjobs": Expected("w", 3, (READ,), 1.0),
    "logs-histogram": Expected("r", 1, (READ,), 1.0),
    "fsync-latency": Expected("w", 1, (WRITE,), 1.0),
    "randtrim-null": Expected("t", 1, (TRIM,), 1.0),
    "status-interval": Expected("w", 1, (READ,), 3.0),
    "iodepth-note": Expected("w", 1, (READ,), 1.0),
    "steadystate": Expected("s", 1, (READ,), 6.0),  # ends as soon as it is steady
    "no-io-done": Expected("z", 1, (READ,)),
}


def judge(case: str, *expected: Expected, interrupted: bool = False) -> tuple[str, ...]:
    """Return the problems of a case, judged by everything that fio left."""
    folder = CASES / case
    output: RunOutput | None
    try:
        output = parse_output((folder / "stdout").read_text())
    except OutputError:
        output = None
    return problems_of(
        output,
        exit_status=int((folder / "exit-status").read_text()),
        stderr=(folder / "stderr").read_text(),
        expected=expected,
        interrupted=interrupted,
    )


def finished() -> RunOutput:
    """Return the output of a good run of writes with syncs."""
    return parse_output((CASES / "fio-3.33/fsync-latency/stdout").read_text())


def judge_output(output: RunOutput, *, stderr: str = "", status: int = 0) -> tuple[str, ...]:
    """Return the problems of an output where one second of writes was."""
    return problems_of(
        output, exit_status=status, stderr=stderr, expected=[Expected("w", 1, (WRITE, SYNC), 1.0)]
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", sorted(GOOD))
def test_a_good_run_has_no_problems(version: str, case: str) -> None:
    """No version's normal run raises a false alarm; those without a result do raise one."""
    problems = judge(f"{version}/{case}", GOOD[case])
    text = (CASES / version / case / "stdout").read_text()
    if '"fio version"' in text:
        assert problems == ()
    else:
        assert problems


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refused_option_is_reported_with_the_message_of_fio(version: str) -> None:
    """Without a result the exit status and stderr say why."""
    problems = judge(f"{version}/bad-option", Expected("r", 1, (READ,)))
    assert problems[0].startswith("fio ended with exit status 1: Bad option <nosuchoption=1>")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_missing_file_is_reported_with_the_message_of_fio(version: str) -> None:
    """An all-zero result with error 0 is no success."""
    problems = judge(f"{version}/missing-file", Expected("r", 1, (READ,)))
    assert any("disallowed by allow_file_create=0" in problem for problem in problems)
    assert "Job r: no read completed." in problems


@pytest.mark.parametrize("version", [v for v in VERSIONS if v != "fio-3.16"])
def test_an_interrupted_run_is_a_problem_unless_intended(version: str) -> None:
    """Exit status 128 and a short runtime count only when nobody stopped fio."""
    expected = Expected("i", 1, (READ,), 30.0)
    problems = judge(f"{version}/interrupted", expected)
    assert problems[0].startswith("fio was interrupted (exit status 128)")
    assert any(" s of 30 s" in problem for problem in problems)
    assert judge(f"{version}/interrupted", expected, interrupted=True) == ()


def test_a_job_error_is_a_problem_even_with_exit_status_0() -> None:
    """256 failed jobs exit with 0; each entry's own error is believed."""
    output = finished()
    failed = replace(output, jobs=(replace(output.jobs[0], error=28),))
    assert judge_output(failed) == ("Job w: error 28 (No space left on device).",)
    strange = replace(output, jobs=(replace(output.jobs[0], error=2**40),))
    assert judge_output(strange) == (f"Job w: error {2**40} (unknown).",)


def test_errors_that_fio_continued_after_are_problems() -> None:
    """With continue_on_error fio exits with 0 and counts the failures."""
    output = finished()
    failed = replace(output, jobs=(replace(output.jobs[0], total_errors=3),))
    assert judge_output(failed) == ("Job w: 3 I/Os failed.",)


def test_an_error_of_several_jobs_is_reported_once() -> None:
    """Lines and entries that differ in their numbers alone are one sentence, with their count."""
    (entry,) = finished().jobs
    output = replace(finished(), jobs=tuple(replace(entry, error=28) for _ in range(4)))
    lines = [
        f"fio: io_u error on file /d/a.{n}.0: No space left on device: write offset={n}4096"
        for n in range(4)
    ]
    problems = problems_of(
        output,
        exit_status=4,
        stderr="\n".join([*lines, "fio: pid=7, err=28/file", "fio: pid=8, err=5/file"]),
        expected=[Expected("w", 4, (WRITE, SYNC), 9.0)],
    )
    said = f"{lines[0]}, 4 such lines / fio: pid=7, err=28/file / fio: pid=8, err=5/file"
    assert problems == (
        f"fio ended with exit status 4: {said}.",
        "Job w: error 28 (No space left on device), 4 such entries.",
        "Job w: it ran for 1.001 s of 9 s, 4 such entries.",
    )


def test_a_missing_entry_is_named() -> None:
    """Each job has to be there."""
    problems = problems_of(
        finished(), exit_status=0, stderr="", expected=[Expected("w", 4, (WRITE,))]
    )
    assert problems == ("Job w: fio reported 1 of 4 entries.",)


def test_a_short_run_is_named_from_95_percent_down() -> None:
    """A little early is normal for fio, much is not."""
    output = finished()
    (write, sync) = output.jobs[0].directions
    for runtime_s, short in ((0.951, False), (0.949, True)):
        parts = (replace(write, runtime_s=runtime_s), replace(sync, runtime_s=runtime_s))
        problems = judge_output(replace(output, jobs=(replace(output.jobs[0], directions=parts),)))
        assert bool(problems) is short


@pytest.mark.parametrize(
    "line",
    [
        "fio: pid=4711, got signal=9",
        "fio: /dev/sdz appears mounted, and 'allow_mounted_write' isn't set. Aborting.",
        "fopen log: No such file or directory",
        "Error 4 while parsing include file x",
        "fio: stuck grabbing stat_sem",
        "fio: job startup hung? exiting.",
    ],
)
def test_messages_of_fio_count_even_with_exit_status_0(line: str) -> None:
    """What fio only says on stderr is a problem, also where it is copied into its output."""
    assert judge_output(finished(), stderr=f"{line}\n") == (f"fio reported: {line}",)
    assert judge_output(replace(finished(), diagnostics=line)) == (f"fio reported: {line}",)


def test_a_truncated_last_document_is_a_problem() -> None:
    """A status document before a cut result is not the result."""
    text = (CASES / "fio-3.33/fsync-latency/stdout").read_text()
    problems = judge_output(parse_output(text + text[: len(text) // 2]))
    assert len(problems) == 1
    assert "cut off" in problems[0]


def test_a_signal_is_named() -> None:
    """A process killed by a signal has a negative status."""
    problems = problems_of(None, exit_status=-9, stderr="", expected=[])
    assert problems == ("fio was killed by signal 9 (Killed).",)
    assert "be full" in problems_of(None, exit_status=0, stderr="", expected=[])[0]
