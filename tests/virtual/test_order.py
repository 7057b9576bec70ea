"""Workers that wait for each other, change while they run, and pauses that end by themselves."""

from __future__ import annotations

from tests.virtual.bench import Bench, dies_after, worker

from rekindle.actors.changes import Changes
from rekindle.actors.health import Status
from rekindle.actors.messages import (
    ChangeWorkers,
    PauseWorkers,
    Refused,
    Shutdown,
    WorkersChanged,
    WorkerStopped,
)
from rekindle.actors.simulation import Life


def started(bench: Bench) -> list[str]:
    return [id_ for _, id_, _ in bench.processes.starts]


def test_a_worker_starts_when_those_before_it_are_healthy() -> None:
    slow = {"db": lambda _generation: Life(healthy_after_s=5.0)}
    bench = Bench(worker("app", after=("db",)), worker("db"), scripts=slow)
    bench.start()
    bench.run(4.9)
    assert started(bench) == ["db"]
    assert bench.status("app").waits_for == ("db",)
    bench.run(0.2)
    assert [(at, id_) for at, id_, _ in bench.processes.starts] == [(0.0, "db"), (5.0, "app")]
    assert bench.status("app").status is Status.HEALTHY


def test_workers_stop_in_the_reverse_order() -> None:
    slow = {id_: lambda _generation: Life(stops_after_s=2.0) for id_ in ("a", "b", "c")}
    bench = Bench(worker("a"), worker("b", after=("a",)), worker("c", after=("b",)), scripts=slow)
    bench.start()
    bench.run(1)
    bench.actors.supervisor.tell(Shutdown())
    bench.run(7)
    stopped = [(at, m.component_id) for at, m in bench.listener.heard if isinstance(m, WorkerStopped)]
    assert stopped == [(3.0, "c"), (5.0, "b"), (7.0, "a")]


def test_a_worker_that_dies_waits_again_for_those_before_it() -> None:
    scripts = {
        "db": lambda generation: Life(dies_after_s=3.0) if generation == 1 else Life(healthy_after_s=20.0),
        "app": dies_after(3.5),
    }
    bench = Bench(worker("app", after=("db",)), worker("db"), scripts=scripts)
    bench.start()
    bench.run(60)
    assert [at for at, id_, _ in bench.processes.starts if id_ == "app"] == [0.0, 24.0]


def test_a_start_that_waits_can_be_stopped() -> None:
    never = {"db": lambda _generation: Life(healthy_after_s=None)}
    bench = Bench(worker("app", after=("db",)), worker("db"), scripts=never)
    bench.start()
    bench.run(1)
    bench.stop("app")
    bench.run(200)
    assert "app" not in started(bench)
    assert bench.status("app").shown == "stopped"


def test_a_changed_set_of_workers_restarts_only_what_changed() -> None:
    bench = Bench(worker("same"), worker("new_env"), worker("policy"), worker("gone"))
    bench.start()
    bench.run(1)
    answer = bench.ask(
        lambda reply: ChangeWorkers(
            (
                worker("same"),
                worker("new_env", env={"A": "b"}),
                worker("policy", restart={"max_lifetime": 1}),
                worker("added"),
            ),
            reply,
        )
    )
    bench.run(1)
    assert answer == WorkersChanged(
        Changes(
            added=("added",),
            removed=("gone",),
            restarted=("new_env",),
            adjusted=("policy",),
            unchanged=("same",),
        )
    )
    assert started(bench)[4:] == ["added", "new_env"] or started(bench)[4:] == ["new_env", "added"]
    assert not bench.processes.alive("gone")
    assert bench.status("new_env").restart_count == 0


def test_cf_08_a_changed_policy_holds_from_the_next_decision_on_and_not_for_a_timer_that_runs() -> None:
    bench = Bench(worker("w"), scripts=dies_after(10.0, 10.0))
    bench.start()
    bench.run(10.5)
    quick = {"initial_delay_s": 30.0}
    bench.ask(lambda reply: ChangeWorkers((worker("w", restart=quick),), reply))
    bench.run(100)
    assert [at for at, _, _ in bench.processes.starts] == [0.0, 11.0, 81.0]


def test_a_set_of_workers_that_makes_no_sense_changes_nothing() -> None:
    bench = Bench(worker("a"))
    bench.start()
    bench.run(1)
    answer = bench.ask(lambda reply: ChangeWorkers((worker("b", after=("nobody",)),), reply))
    bench.run(5)
    assert isinstance(answer, Refused)
    assert started(bench) == ["a"]
    assert bench.status("a").status is Status.HEALTHY


def test_a_pause_for_a_time_ends_by_itself() -> None:
    bench = Bench(worker("w"))
    bench.start()
    bench.run(1)
    bench.tell(PauseWorkers(None, None, "new disk", 1800.0))
    bench.run(10)
    paused = bench.status("w")
    assert (paused.shown, paused.pause_reason, paused.pause_ends_in_s) == ("stopped", "new disk", 1790)
    bench.run(1800)
    assert [at for at, _, _ in bench.processes.starts] == [0.0, 1801.0]


def test_a_pause_for_a_time_ends_also_when_the_application_was_restarted_meanwhile() -> None:
    bench = Bench(worker("w"))
    bench.start()
    bench.run(1)
    bench.tell(PauseWorkers(None, None, "", 100.0))
    bench.run(30)
    bench.restart_application()
    bench.start()
    bench.run(60)
    assert not bench.processes.alive("w")
    bench.run(15)
    assert bench.processes.alive("w")
