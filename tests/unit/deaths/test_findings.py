"""What the evidence of a death amounts to, and what it does not."""

from __future__ import annotations

import signal

import pytest
from msgspec.structs import replace
from tests.unit.builders import TAG

from rekindle.actors.deaths.death import HUNG, Cause, Death, Exit
from rekindle.actors.deaths.evidence import Remains, Spent
from rekindle.actors.deaths.findings import Confidence, Finding, diagnose

DEATH = Death(component_id=TAG, generation=1, cause=Cause.SIGNALLED, detail="why")
KILLED = Exit(signal=signal.SIGKILL)
BIG = Spent(user_ms=1, system_ms=1, peak_rss_kb=900)
SMALL = Spent(user_ms=1, system_ms=1, peak_rss_kb=10)
BOUND = Spent(user_ms=1, system_ms=1, peak_rss_kb=900, peak_is_a_bound=True)

TRACEBACK = """Traceback (most recent call last):
  File "/srv/app.py", line 3, in work
    save(song)
  File "/srv/disk.py", line 9, in save
    raise OSError("disk full")
OSError: disk full
"""
STACKS = """Fatal Python error: Segmentation fault

Thread 0x00007f0ff9eb86c0 (most recent call first):
  File "/usr/lib/threading.py", line 982 in run

Current thread 0x00007f0ffaa38b80 (most recent call first):
  File "/srv/native.py", line 5 in poke
  File "/srv/app.py", line 4 in work
"""


def finding(exit_: Exit, **remains: object) -> tuple[Finding, Confidence]:
    cause = exit_.cause
    verdict = diagnose(replace(DEATH, cause=cause), exit_, Remains(**remains))  # type: ignore[arg-type]
    return verdict.finding, verdict.confidence


def test_a_kill_that_its_own_control_group_counted_is_certain_however_little_it_used() -> None:
    found, sure = finding(KILLED, usage=SMALL, memory_limit_kb=1 << 40, oom_kills=1, counted_alone=True)
    assert (found, sure) == (Finding.OUT_OF_MEMORY, Confidence.CERTAIN)


@pytest.mark.parametrize(
    ("usage", "limit_kb", "oom_kills", "expected"),
    [
        (None, None, None, Finding.UNKNOWN),
        (BIG, 1000, 0, Finding.UNKNOWN),  # a counter that stands still is proof
        (BIG, 1000, None, Finding.OUT_OF_MEMORY_SUSPECTED),
        (BOUND, 1000, None, Finding.UNKNOWN),  # the peak may be the supervisor's own
        (SMALL, 1000, None, Finding.UNKNOWN),
        (BIG, None, None, Finding.UNKNOWN),
        (BIG, 1000, 1, Finding.OUT_OF_MEMORY),
        (BOUND, 1000, 1, Finding.OUT_OF_MEMORY),
        (None, None, 1, Finding.OUT_OF_MEMORY),
        (SMALL, 1000, 1, Finding.OUT_OF_MEMORY_SUSPECTED),  # another program's, rather
    ],
)
def test_sigkill_is_a_lack_of_memory_only_where_something_shows_it(
    usage: Spent | None, limit_kb: int | None, oom_kills: int | None, expected: Finding
) -> None:
    found, sure = finding(KILLED, usage=usage, memory_limit_kb=limit_kb, oom_kills=oom_kills)
    assert found is expected
    assert (sure is Confidence.CERTAIN) == (expected is Finding.OUT_OF_MEMORY)


def test_a_kill_of_ours_is_never_blamed_on_memory() -> None:
    assert finding(KILLED, sent=signal.SIGKILL, oom_kills=3)[0] is Finding.KILLED_BY_US


@pytest.mark.parametrize("cause", sorted(HUNG - {Cause.UNHEALTHY, Cause.PROBE_FAILED}))
def test_a_hung_worker_stays_hung_however_its_process_ended(cause: Cause) -> None:
    for exit_ in (Exit(), KILLED, Exit(signal=signal.SIGTERM), Exit(code=0)):
        verdict = diagnose(replace(DEATH, cause=cause), exit_, Remains(sent=signal.SIGTERM))
        assert (verdict.finding, verdict.confidence) == (Finding.HUNG, Confidence.CERTAIN)
        assert "why" in verdict.sentence


def test_a_worker_that_reported_a_problem_is_not_hung() -> None:
    verdict = diagnose(replace(DEATH, cause=Cause.UNHEALTHY), KILLED, Remains(sent=signal.SIGTERM))
    assert (verdict.finding, verdict.confidence) == (Finding.UNHEALTHY, Confidence.CERTAIN)
    assert verdict.sentence.startswith("unhealthy by its own report: why; after SIGTERM")


@pytest.mark.parametrize("cause", [Cause.PROTOCOL, Cause.RESOURCE_LIMIT, Cause.CHANNEL_CLOSED])
def test_what_we_end_ourselves_is_killed_by_us(cause: Cause) -> None:
    verdict = diagnose(replace(DEATH, cause=cause), KILLED, None)
    assert verdict.finding is Finding.KILLED_BY_US
    assert "ended by Rekindle" in verdict.sentence


def test_a_stop_by_an_operator_is_attributed_to_the_operator_despite_other_evidence() -> None:
    verdict = diagnose(DEATH, KILLED, Remains(sent=signal.SIGKILL), asked=True)
    assert (verdict.finding, verdict.confidence) == (Finding.OPERATOR, Confidence.CERTAIN)


@pytest.mark.parametrize(
    ("exit_", "words", "expected"),
    [
        (Exit(signal=signal.SIGSEGV), STACKS, (Finding.SEGMENTATION_FAULT, Confidence.CERTAIN)),
        (Exit(signal=signal.SIGSEGV), "", (Finding.SEGMENTATION_FAULT, Confidence.LIKELY)),
        (Exit(signal=signal.SIGABRT), "", (Finding.FATAL_SIGNAL, Confidence.LIKELY)),
        (Exit(signal=signal.SIGTERM), "", (Finding.UNKNOWN, Confidence.GUESS)),
        (Exit(code=1), TRACEBACK, (Finding.EXCEPTION, Confidence.CERTAIN)),
        (Exit(code=1), "", (Finding.EXIT, Confidence.CERTAIN)),
        (Exit(code=0), TRACEBACK, (Finding.EXIT, Confidence.CERTAIN)),
        (Exit(), "", (Finding.UNKNOWN, Confidence.GUESS)),
    ],
)
def test_the_end_and_the_last_words_tell_the_rest(
    exit_: Exit, words: str, expected: tuple[Finding, Confidence]
) -> None:
    assert finding(exit_, last_words=words) == expected


def test_a_fault_is_placed_in_the_thread_at_fault() -> None:
    verdict = diagnose(DEATH, Exit(signal=signal.SIGSEGV), Remains(last_words=STACKS))
    assert verdict.sentence == "segmentation fault in poke (/srv/native.py, line 5)"


def test_an_exception_is_described_by_its_last_line_and_its_place() -> None:
    verdict = diagnose(replace(DEATH, cause=Cause.EXITED), Exit(code=1), Remains(last_words=TRACEBACK))
    assert verdict.sentence == "OSError: disk full in save (/srv/disk.py, line 9)"


def test_a_traceback_on_stderr_makes_an_exception_likely() -> None:
    output = tuple(("err", line) for line in TRACEBACK.splitlines())
    assert finding(Exit(code=1), output=output) == (Finding.EXCEPTION, Confidence.LIKELY)
    assert finding(Exit(code=1), output=tuple(("out", text) for _, text in output))[0] is Finding.EXIT
