"""A death in words."""

from __future__ import annotations

import pytest
from tests.unit.builders import TAG, crash, silence

from rekindle.actors.deaths.death import Cause, Death, Exit, signal_name


@pytest.mark.parametrize(
    ("exit_", "cause", "words"),
    [
        (Exit(0), Cause.EXITED, "exited with code 0"),
        (Exit(3), Cause.EXITED, "exited with code 3"),
        (Exit(signal=9), Cause.SIGNALLED, "killed by SIGKILL"),
        (Exit(signal=11), Cause.SIGNALLED, "killed by SIGSEGV"),
        (Exit(signal=99), Cause.SIGNALLED, "killed by signal 99"),
        (Exit(), Cause.UNKNOWN, "ended, exit status unknown"),
    ],
)
def test_an_exit_has_a_cause_and_words(exit_: Exit, cause: Cause, words: str) -> None:
    assert (exit_.cause, str(exit_)) == (cause, words)


def test_t35_an_exit_code_is_never_taken_for_a_signal() -> None:
    assert (Exit(137).cause, Exit(255).cause, Exit(signal=1).cause) == ("exited", "exited", "signalled")


@pytest.mark.parametrize(("exit_", "clean"), [(Exit(0), True), (Exit(1), False), (Exit(signal=9), False)])
def test_only_exit_code_0_is_clean(exit_: Exit, clean: bool) -> None:
    assert exit_.clean is clean
    assert not Exit().clean


def test_a_death_by_exit_is_described_by_the_exit() -> None:
    assert str(crash(signal=15)) == "killed by SIGTERM"


def test_another_death_is_described_by_its_cause_and_detail() -> None:
    failed = Death(component_id=TAG, generation=1, cause=Cause.SPAWN_FAILED, detail="No such file")
    assert (str(failed), str(silence())) == ("spawn failed (No such file)", "heartbeat lost")


def test_a_signal_without_a_name_is_a_number() -> None:
    assert (signal_name(9), signal_name(1000)) == ("SIGKILL", "signal 1000")
