"""Workers that wait for each other, change while they run, and pauses that end by themselves."""

from __future__ import annotations

from typing import Any

from tests.virtual.bench import Bench, dies_after, worker

from rekindle.actors.facts.health_status import Status
from rekindle.actors.messages import (
    AddWorker,
    ChangeWorkers,
    Done,
    PauseWorkers,
    Refused,
    RemoveWorker,
    RestartWorker,
    ResumeWorkers,
    Shutdown,
    StartWorkers,
    StopWorkers,
    WorkersChanged,
    WorkerStopped,
)
from rekindle.actors.simulation import Life
from rekindle.actors.spec.spec_changes import Changes
from rekindle.actors.spec.worker_spec import PauseMode, WorkerSpec


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


def test_a_changed_worker_that_is_not_started_is_named_with_what_it_waits_for() -> None:
    ids = ("up", "paused", "idling", "stopped", "crashed", "failed")
    tables: dict[str, dict[str, Any]] = {
        "idling": {"pause_mode": PauseMode.IDLE},
        "failed": {"restart": {"max_lifetime": 1}},
    }

    def specs(**changes: Any) -> tuple[WorkerSpec, ...]:
        return tuple(worker(id_, **tables.get(id_, {}), **changes) for id_ in ids)

    bench = Bench(*specs(), scripts={"crashed": dies_after(9.5), "failed": dies_after(1.0, 1.0)})
    bench.start()
    bench.run(5)
    bench.tell(PauseWorkers(("paused", "idling")))
    bench.stop("stopped")
    bench.run_to(10)
    answer = bench.ask(lambda reply: ChangeWorkers(specs(env={"A": "b"}), reply))
    assert answer == WorkersChanged(
        Changes(
            restarted=ids,
            stays_failed=("failed",),
            when_resumed=("paused", "idling"),
            when_started=("stopped",),
            when_restarted=("crashed",),
        )
    )
    bench.run(5)
    assert [bench.processes.alive(id_) for id_ in ids] == [True, False, False, False, True, False]


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


def test_a_pause_for_a_time_is_not_moved_by_the_wall_clock() -> None:
    bench = Bench(worker("w"))
    bench.start()
    bench.run(1)
    bench.tell(PauseWorkers(None, None, "", 100.0))
    bench.runtime.virtual_clock.set_wall(by_ms=-3_600_000)
    bench.run(99)
    assert bench.starts("w") == [0.0]
    bench.run(2)
    assert bench.starts("w") == [0.0, 101.0]


def test_the_pause_of_a_worker_that_was_removed_ends_with_it() -> None:
    """Its end came again and again, at once, for ever."""
    bench = Bench(worker("a"), worker("b"))
    bench.start()
    bench.run(1)
    bench.tell(PauseWorkers(("a",), None, "", 10.0))
    bench.tell(RemoveWorker("a"))
    bench.run(5)
    assert bench.runtime.virtual_timers.pending() == [] or all(
        due > bench.now for due, _ in bench.runtime.virtual_timers.pending()
    )
    assert not [key for key, value in bench.memory.load().meta.items() if ":a" in key and value == "false"]


def test_the_pause_of_a_worker_that_is_gone_from_the_file_ends_too() -> None:
    bench = Bench(worker("a"), worker("b"))
    bench.start()
    bench.tell(PauseWorkers(("a",), None, "", 10.0))
    bench.run(1)
    bench.specs = (worker("b"),)
    bench.restart_application(away_s=60)
    bench.start()
    bench.run(5)
    assert not [key for key in bench.memory.load().meta if key.endswith(":a")]


def test_a_pause_stops_workers_in_order() -> None:
    slow = {id_: lambda _generation: Life(stops_after_s=2.0) for id_ in ("db", "web")}
    bench = Bench(worker("db"), worker("web", after=("db",)), scripts=slow)
    bench.start()
    bench.run(1)
    bench.tell(PauseWorkers())
    bench.run(10)
    assert [(at, event.component_id) for at, event in bench.events(WorkerStopped)] == [
        (3.0, "web"),
        (5.0, "db"),
    ]


def test_workers_that_are_removed_together_stop_in_order() -> None:
    slow = {id_: lambda _generation: Life(stops_after_s=2.0) for id_ in ("db", "web")}
    bench = Bench(worker("db"), worker("web", after=("db",)), worker("x"), scripts=slow)
    bench.start()
    bench.run(1)
    bench.tell(ChangeWorkers((worker("x"),)))
    bench.run(10)
    assert [event.component_id for _, event in bench.events(WorkerStopped)] == ["web", "db"]


def test_sd_19_a_worker_that_waits_for_its_stop_cannot_be_started() -> None:
    slow = {"web": lambda _generation: Life(stops_after_s=2.0)}
    bench = Bench(worker("db"), worker("web", after=("db",)), scripts=slow)
    bench.start()
    bench.run(1)
    bench.tell(StopWorkers())
    answer = bench.ask(lambda reply: StartWorkers(("db",), reply))
    assert answer == Refused("db is about to be stopped; try again")
    bench.run(10)
    assert bench.ask(lambda reply: StartWorkers(("db",), reply)) == Done()


def test_one_worker_cannot_go_on_while_everything_is_paused() -> None:
    bench = Bench(worker("a"))
    bench.start()
    bench.tell(PauseWorkers())
    answer = bench.ask(lambda reply: ResumeWorkers(("a",), reply))
    assert answer == Refused("everything is paused; resume everything first")


def test_an_unkillable_worker_does_not_keep_the_others_from_being_asked_to_stop() -> None:
    stuck = Life(stops_after_s=None, ignores_term=True, ignores_kill=True)
    bench = Bench(worker("db"), worker("web", after=("db",)), scripts={"web": lambda _generation: stuck})
    bench.start()
    bench.run(1)
    bench.actors.supervisor.tell(Shutdown())
    bench.run(20)
    assert [event.component_id for _, event in bench.events(WorkerStopped)] == ["db"]


def test_hundreds_of_workers_that_are_down_are_stopped_without_a_deep_stack() -> None:
    bench = Bench(*(worker(f"w{number}") for number in range(400)))
    bench.tell(PauseWorkers())
    bench.start()
    assert len(bench.shut_down()) == 400


def test_a_stop_of_everything_goes_on_when_one_that_was_stopping_is_wanted_again() -> None:
    """Found by hypothesis: the stop of `db` waited for ever for the end of `web`, which came back."""
    slow = {"web": lambda _generation: Life(stops_after_s=2.0)}
    bench = Bench(worker("db"), worker("web", after=("db",)), scripts=slow)
    bench.start()
    bench.run(1)
    bench.tell(StopWorkers(None))
    bench.tell(RestartWorker("web"))
    bench.run(30)
    assert bench.status("db").shown == "stopped"
    assert bench.status("web").waits_for == ("db",)


def test_what_waits_for_its_turn_to_stop_is_not_started_meanwhile() -> None:
    """Found by hypothesis: a restart that was under way went on after everything was told to stop."""
    slow = {id_: lambda _generation: Life(stops_after_s=2.0) for id_ in ("db", "web")}
    bench = Bench(worker("db"), worker("web", after=("db",)), scripts=slow)
    bench.start()
    bench.run(1)
    bench.tell(RestartWorker("db"))
    bench.run(1)
    bench.tell(StopWorkers(None))
    bench.run(30)
    assert [id_ for _, id_, _ in bench.processes.starts] == ["db", "web"]


def test_a_delay_that_ends_while_others_stop_starts_nothing() -> None:
    slow = {"db": dies_after(2), "web": lambda _generation: Life(stops_after_s=5.0)}
    bench = Bench(worker("db"), worker("web", after=("db",)), scripts=slow)
    bench.start()
    bench.run(2.5)
    bench.tell(StopWorkers(None))
    bench.run(30)
    assert [id_ for _, id_, _ in bench.processes.starts] == ["db", "web"]


def test_a_pause_does_not_undo_a_stop_that_waits_for_its_turn() -> None:
    """Found by hypothesis: paused before its turn to stop came, `db` was started by the resume."""
    slow = {"web": lambda _generation: Life(stops_after_s=2.0)}
    bench = Bench(worker("db"), worker("web", after=("db",)), scripts=slow)
    bench.start()
    bench.run(1)
    bench.tell(StopWorkers(None))
    bench.tell(PauseWorkers(None))
    bench.run(10)
    bench.tell(ResumeWorkers(None))
    bench.run(10)
    assert [bench.status(id_).shown for id_ in ("db", "web")] == ["stopped", "stopped"]


def test_a_pause_that_is_over_before_it_could_begin_for_one_holds_nobody_down() -> None:
    """The one that others needed was paused when they had stopped, after the pause was over."""
    slow = {"app": lambda _generation: Life(stops_after_s=5.0)}
    bench = Bench(worker("db"), worker("app", after=("db",)), scripts=slow).start()
    bench.run(1)
    bench.tell(PauseWorkers(None, for_s=2.0))
    bench.run(60)
    assert [bench.status(id_).status for id_ in ("db", "app")] == [Status.HEALTHY, Status.HEALTHY]
    assert started(bench) == ["db", "app", "app"]


def test_the_same_where_the_file_names_those_first_who_need_the_other() -> None:
    slow = {"app": lambda _generation: Life(stops_after_s=5.0)}
    bench = Bench(worker("app", after=("db",)), worker("db"), scripts=slow).start()
    bench.run(1)
    bench.tell(PauseWorkers(None, for_s=2.0))
    bench.run(60)
    assert started(bench) == ["db", "app", "app"]


def test_a_stop_that_an_operator_ordered_outlasts_the_pause_meanwhile() -> None:
    slow = {"app": lambda _generation: Life(stops_after_s=5.0)}
    bench = Bench(worker("db"), worker("app", after=("db",)), scripts=slow).start()
    bench.run(1)
    bench.tell(StopWorkers(("db", "app")))
    bench.tell(PauseWorkers(None, for_s=2.0))
    bench.run(60)
    assert [bench.status(id_).status for id_ in ("db", "app")] == [None, None]


def test_who_waits_for_one_that_is_removed_waits_no_longer() -> None:
    never = {"db": lambda _generation: Life(healthy_after_s=None)}
    bench = Bench(worker("app", after=("db",)), worker("db"), scripts=never).start()
    bench.run(1)
    bench.tell(RemoveWorker("db"))
    bench.run(60)
    assert bench.status("app").status is Status.HEALTHY


def test_others_can_be_added_after_one_was_removed_that_somebody_names() -> None:
    bench = Bench(worker("app", after=("db",)), worker("db")).start()
    bench.run(1)
    bench.tell(RemoveWorker("db"))
    bench.run(60)
    assert bench.ask(lambda reply: AddWorker(worker("other"), reply)) == Done()
    refused = bench.ask(lambda reply: AddWorker(worker("late", after=("db",)), reply))
    assert isinstance(refused, Refused)
    assert bench.ask(lambda reply: AddWorker(worker("db", after=("app",)), reply)) != Done(), "a circle"
    assert bench.ask(lambda reply: AddWorker(worker("db"), reply)) == Done()
