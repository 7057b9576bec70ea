"""Who waits for which workers to stop."""

from __future__ import annotations

from rekindle.actors.deaths.death import Exit
from rekindle.actors.messages import StopResult, WorkersStopped
from rekindle.actors.supervisor.stop_waits import StopWatch


class Somebody:
    """Whoever waits."""

    def tell(self, message: object) -> None:
        """Nothing is told here: the watch only says who is to be answered."""


def test_a_wait_is_over_when_all_of_its_workers_rest() -> None:
    watch, somebody = StopWatch(), Somebody()
    watch.watch(["a", "b"], somebody)
    watch.settled("a", Exit(0), None)
    assert watch.finished() == []
    watch.settled("b", None, None)
    assert watch.finished() == [
        (somebody, WorkersStopped((StopResult("a", Exit(0), None), StopResult("b", None, None))))
    ]


def test_a_wait_is_answered_once() -> None:
    watch = StopWatch()
    watch.watch(["a"], Somebody())
    watch.settled("a", Exit(0), None)
    assert len(watch.finished()) == 1
    assert watch.finished() == []


def test_a_wait_for_nobody_is_over_at_once() -> None:
    watch, somebody = StopWatch(), Somebody()
    watch.watch([], somebody)
    assert watch.finished() == [(somebody, WorkersStopped(()))]


def test_two_may_wait_for_the_same_worker() -> None:
    watch, first, second = StopWatch(), Somebody(), Somebody()
    watch.watch(["a"], first)
    watch.watch(["a", "b"], second)
    watch.settled("a", Exit(0), None)
    assert [receiver for receiver, _ in watch.finished()] == [first]
    watch.settled("b", Exit(0), None)
    assert [receiver for receiver, _ in watch.finished()] == [second]


def test_the_end_of_others_is_no_concern() -> None:
    watch = StopWatch()
    watch.watch(["a"], Somebody())
    watch.settled("z", Exit(0), None)
    assert watch.finished() == []


def test_p10_a_process_that_cannot_be_killed_does_not_keep_anybody_waiting() -> None:
    watch = StopWatch()
    watch.watch(["a"], Somebody())
    watch.unkillable("a")
    ((_, answer),) = watch.finished()
    assert (answer.results[0].gone, answer.results[0].killed) == (False, True)


def test_sd_05_a_result_says_whether_it_took_sigkill() -> None:
    assert StopResult("a", Exit(signal=9), 9).killed
    assert not StopResult("a", Exit(signal=15), 15).killed
    assert not StopResult("a", Exit(signal=9), None).killed
