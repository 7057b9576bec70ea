"""Who waits for which workers to stop."""

from __future__ import annotations

from rekindle.actors.deaths.death import Exit
from rekindle.actors.messages import StopResult, WorkersStopped
from rekindle.actors.supervisor.pending.stop_waits import StopWatch


class Caller:
    """A caller that waits."""

    def tell(self, message: object) -> None:
        """Nothing is sent here: the watch only returns the callers to answer."""


def test_a_wait_is_over_when_all_of_its_workers_rest() -> None:
    watch, caller = StopWatch(), Caller()
    watch.watch(["a", "b"], caller)
    watch.settled("a", Exit(0), None)
    assert watch.finished() == []
    watch.settled("b", None, None)
    assert watch.finished() == [
        (caller, WorkersStopped((StopResult("a", Exit(0), None), StopResult("b", None, None))))
    ]


def test_a_wait_is_answered_once() -> None:
    watch = StopWatch()
    watch.watch(["a"], Caller())
    watch.settled("a", Exit(0), None)
    assert len(watch.finished()) == 1
    assert watch.finished() == []


def test_a_wait_for_no_workers_is_over_at_once() -> None:
    watch, caller = StopWatch(), Caller()
    watch.watch([], caller)
    assert watch.finished() == [(caller, WorkersStopped(()))]


def test_two_may_wait_for_the_same_worker() -> None:
    watch, first, second = StopWatch(), Caller(), Caller()
    watch.watch(["a"], first)
    watch.watch(["a", "b"], second)
    watch.settled("a", Exit(0), None)
    assert [receiver for receiver, _ in watch.finished()] == [first]
    watch.settled("b", Exit(0), None)
    assert [receiver for receiver, _ in watch.finished()] == [second]


def test_the_end_of_other_workers_is_ignored() -> None:
    watch = StopWatch()
    watch.watch(["a"], Caller())
    watch.settled("z", Exit(0), None)
    assert watch.finished() == []


def test_p10_a_process_that_cannot_be_killed_does_not_keep_callers_waiting() -> None:
    watch = StopWatch()
    watch.watch(["a"], Caller())
    watch.unkillable("a")
    ((_, answer),) = watch.finished()
    assert (answer.results[0].gone, answer.results[0].killed) == (False, True)


def test_sd_05_a_result_says_whether_it_took_sigkill() -> None:
    assert StopResult("a", Exit(signal=9), 9).killed
    assert not StopResult("a", Exit(signal=15), 15).killed
    assert not StopResult("a", Exit(signal=9), None).killed
