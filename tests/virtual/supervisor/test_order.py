"""Workers that wait for each other, change while they run, and pauses that end by themselves."""

from __future__ import annotations

from typing import Any

from tests.virtual.simulated_system import SimulatedSystem, uptimes, worker

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
from rekindle.actors.simulation import Behaviour, dies_after
from rekindle.actors.spec.spec_changes import Changes
from rekindle.actors.spec.worker_spec import PauseMode, WorkerSpec


def started(system: SimulatedSystem) -> list[str]:
    return [id_ for _, id_, _ in system.processes.starts]


def test_a_worker_starts_when_those_before_it_are_healthy() -> None:
    slow = {"db": lambda _generation: Behaviour(healthy_after=5.0)}
    system = SimulatedSystem(worker("app", after=("db",)), worker("db"), scripts=slow)
    system.start()
    system.run(4.9)
    assert started(system) == ["db"]
    assert system.status("app").waits_for == ("db",)
    system.run(0.2)
    assert [(at, id_) for at, id_, _ in system.processes.starts] == [(0.0, "db"), (5.0, "app")]
    assert system.status("app").status is Status.HEALTHY


def test_workers_stop_in_the_reverse_order() -> None:
    slow = {id_: lambda _generation: Behaviour(stops_after=2.0) for id_ in ("a", "b", "c")}
    system = SimulatedSystem(worker("a"), worker("b", after=("a",)), worker("c", after=("b",)), scripts=slow)
    system.start()
    system.run(1)
    system.actors.supervisor.tell(Shutdown())
    system.run(7)
    stopped = [(at, m.component_id) for at, m in system.listener.received if isinstance(m, WorkerStopped)]
    assert stopped == [(3.0, "c"), (5.0, "b"), (7.0, "a")]


def test_a_worker_that_dies_waits_again_for_those_before_it() -> None:
    scripts = {
        "db": lambda generation: dies_after(3.0) if generation == 1 else Behaviour(healthy_after=20.0),
        "app": uptimes(3.5),
    }
    system = SimulatedSystem(worker("app", after=("db",)), worker("db"), scripts=scripts)
    system.start()
    system.run(60)
    assert [at for at, id_, _ in system.processes.starts if id_ == "app"] == [0.0, 24.0]


def test_a_start_that_waits_can_be_stopped() -> None:
    never = {"db": lambda _generation: Behaviour(healthy_after=None)}
    system = SimulatedSystem(worker("app", after=("db",)), worker("db"), scripts=never)
    system.start()
    system.run(1)
    system.stop("app")
    system.run(200)
    assert "app" not in started(system)
    assert system.status("app").shown == "stopped"


def test_a_changed_set_of_workers_restarts_only_what_changed() -> None:
    system = SimulatedSystem(worker("same"), worker("new_env"), worker("policy"), worker("gone"))
    system.start()
    system.run(1)
    answer = system.ask(
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
    system.run(1)
    assert answer == WorkersChanged(
        Changes(
            added=("added",),
            removed=("gone",),
            restarted=("new_env",),
            adjusted=("policy",),
            unchanged=("same",),
        )
    )
    assert started(system)[4:] == ["added", "new_env"] or started(system)[4:] == ["new_env", "added"]
    assert not system.processes.alive("gone")
    assert system.status("new_env").restart_count == 0


def test_a_changed_worker_that_is_not_started_is_named_with_what_it_waits_for() -> None:
    ids = ("up", "paused", "idling", "stopped", "crashed", "failed")
    tables: dict[str, dict[str, Any]] = {
        "idling": {"pause_mode": PauseMode.IDLE},
        "failed": {"restart": {"max_lifetime": 1}},
    }

    def specs(**changes: Any) -> tuple[WorkerSpec, ...]:
        return tuple(worker(id_, **tables.get(id_, {}), **changes) for id_ in ids)

    system = SimulatedSystem(*specs(), scripts={"crashed": uptimes(9.5), "failed": uptimes(1.0, 1.0)})
    system.start()
    system.run(5)
    system.tell(PauseWorkers(("paused", "idling")))
    system.stop("stopped")
    system.run_to(10)
    answer = system.ask(lambda reply: ChangeWorkers(specs(env={"A": "b"}), reply))
    assert answer == WorkersChanged(
        Changes(
            restarted=ids,
            stays_failed=("failed",),
            when_resumed=("paused", "idling"),
            when_started=("stopped",),
            when_restarted=("crashed",),
        )
    )
    system.run(5)
    assert [system.processes.alive(id_) for id_ in ids] == [True, False, False, False, True, False]


def test_cf_08_a_changed_policy_holds_from_the_next_decision_on_and_not_for_a_timer_that_runs() -> None:
    system = SimulatedSystem(worker("w"), scripts=uptimes(10.0, 10.0))
    system.start()
    system.run(10.5)
    quick = {"initial_delay_s": 30.0}
    system.ask(lambda reply: ChangeWorkers((worker("w", restart=quick),), reply))
    system.run(100)
    assert [at for at, _, _ in system.processes.starts] == [0.0, 11.0, 81.0]


def test_a_set_of_workers_that_makes_no_sense_changes_nothing() -> None:
    system = SimulatedSystem(worker("a"))
    system.start()
    system.run(1)
    answer = system.ask(lambda reply: ChangeWorkers((worker("b", after=("absent",)),), reply))
    system.run(5)
    assert isinstance(answer, Refused)
    assert started(system) == ["a"]
    assert system.status("a").status is Status.HEALTHY


def test_a_pause_for_a_time_ends_by_itself() -> None:
    system = SimulatedSystem(worker("w"))
    system.start()
    system.run(1)
    system.tell(PauseWorkers(None, None, "new disk", 1800.0))
    system.run(10)
    paused = system.status("w")
    assert (paused.shown, paused.pause_reason, paused.pause_ends_in_s) == ("stopped", "new disk", 1790)
    system.run(1800)
    assert [at for at, _, _ in system.processes.starts] == [0.0, 1801.0]


def test_a_pause_for_a_time_ends_also_when_the_application_was_restarted_meanwhile() -> None:
    system = SimulatedSystem(worker("w"))
    system.start()
    system.run(1)
    system.tell(PauseWorkers(None, None, "", 100.0))
    system.run(30)
    system.restart_application()
    system.start()
    system.run(60)
    assert not system.processes.alive("w")
    system.run(15)
    assert system.processes.alive("w")


def test_a_pause_for_a_time_is_not_moved_by_the_wall_clock() -> None:
    system = SimulatedSystem(worker("w"))
    system.start()
    system.run(1)
    system.tell(PauseWorkers(None, None, "", 100.0))
    system.runtime.virtual_clock.set_wall(by_ms=-3_600_000)
    system.run(99)
    assert system.starts("w") == [0.0]
    system.run(2)
    assert system.starts("w") == [0.0, 101.0]


def test_the_pause_of_a_worker_that_was_removed_ends_with_it() -> None:
    """Its end came again and again, at once, without end."""
    system = SimulatedSystem(worker("a"), worker("b"))
    system.start()
    system.run(1)
    system.tell(PauseWorkers(("a",), None, "", 10.0))
    system.tell(RemoveWorker("a"))
    system.run(5)
    assert system.runtime.virtual_timers.pending() == [] or all(
        due > system.now for due, _ in system.runtime.virtual_timers.pending()
    )
    assert not [key for key, value in system.memory.load().meta.items() if ":a" in key and value == "false"]


def test_the_pause_of_a_worker_that_is_gone_from_the_file_ends_too() -> None:
    system = SimulatedSystem(worker("a"), worker("b"))
    system.start()
    system.tell(PauseWorkers(("a",), None, "", 10.0))
    system.run(1)
    system.specs = (worker("b"),)
    system.restart_application(away_s=60)
    system.start()
    system.run(5)
    assert not [key for key in system.memory.load().meta if key.endswith(":a")]


def test_a_pause_stops_workers_in_order() -> None:
    slow = {id_: lambda _generation: Behaviour(stops_after=2.0) for id_ in ("db", "web")}
    system = SimulatedSystem(worker("db"), worker("web", after=("db",)), scripts=slow)
    system.start()
    system.run(1)
    system.tell(PauseWorkers())
    system.run(10)
    assert [(at, event.component_id) for at, event in system.events(WorkerStopped)] == [
        (3.0, "web"),
        (5.0, "db"),
    ]


def test_workers_that_are_removed_together_stop_in_order() -> None:
    slow = {id_: lambda _generation: Behaviour(stops_after=2.0) for id_ in ("db", "web")}
    system = SimulatedSystem(worker("db"), worker("web", after=("db",)), worker("x"), scripts=slow)
    system.start()
    system.run(1)
    system.tell(ChangeWorkers((worker("x"),)))
    system.run(10)
    assert [event.component_id for _, event in system.events(WorkerStopped)] == ["web", "db"]


def test_sd_19_a_worker_that_waits_for_its_stop_cannot_be_started() -> None:
    slow = {"web": lambda _generation: Behaviour(stops_after=2.0)}
    system = SimulatedSystem(worker("db"), worker("web", after=("db",)), scripts=slow)
    system.start()
    system.run(1)
    system.tell(StopWorkers())
    answer = system.ask(lambda reply: StartWorkers(("db",), reply))
    assert answer == Refused("db is about to be stopped; try again")
    system.run(10)
    assert system.ask(lambda reply: StartWorkers(("db",), reply)) == Done()


def test_one_worker_cannot_go_on_while_everything_is_paused() -> None:
    system = SimulatedSystem(worker("a"))
    system.start()
    system.tell(PauseWorkers())
    answer = system.ask(lambda reply: ResumeWorkers(("a",), reply))
    assert answer == Refused("everything is paused; resume everything first")


def test_an_unkillable_worker_does_not_keep_the_others_from_being_asked_to_stop() -> None:
    stuck = Behaviour(ignores_request=True, ignores_term=True, ignores_kill=True)
    system = SimulatedSystem(
        worker("db"), worker("web", after=("db",)), scripts={"web": lambda _generation: stuck}
    )
    system.start()
    system.run(1)
    system.actors.supervisor.tell(Shutdown())
    system.run(20)
    assert [event.component_id for _, event in system.events(WorkerStopped)] == ["db"]


def test_hundreds_of_workers_that_are_down_are_stopped_without_a_deep_stack() -> None:
    system = SimulatedSystem(*(worker(f"w{number}") for number in range(400)))
    system.tell(PauseWorkers())
    system.start()
    assert len(system.shut_down()) == 400


def test_a_stop_of_everything_goes_on_when_one_that_was_stopping_is_wanted_again() -> None:
    """Found by hypothesis: the stop of `db` waited without end for the end of `web`, which came back."""
    slow = {"web": lambda _generation: Behaviour(stops_after=2.0)}
    system = SimulatedSystem(worker("db"), worker("web", after=("db",)), scripts=slow)
    system.start()
    system.run(1)
    system.tell(StopWorkers(None))
    system.tell(RestartWorker("web"))
    system.run(30)
    assert system.status("db").shown == "stopped"
    assert system.status("web").waits_for == ("db",)


def test_what_waits_for_its_turn_to_stop_is_not_started_meanwhile() -> None:
    """Found by hypothesis: a restart that was under way went on after the stop of everything."""
    slow = {id_: lambda _generation: Behaviour(stops_after=2.0) for id_ in ("db", "web")}
    system = SimulatedSystem(worker("db"), worker("web", after=("db",)), scripts=slow)
    system.start()
    system.run(1)
    system.tell(RestartWorker("db"))
    system.run(1)
    system.tell(StopWorkers(None))
    system.run(30)
    assert [id_ for _, id_, _ in system.processes.starts] == ["db", "web"]


def test_a_delay_that_ends_while_others_stop_starts_nothing() -> None:
    slow = {"db": uptimes(2), "web": lambda _generation: Behaviour(stops_after=5.0)}
    system = SimulatedSystem(worker("db"), worker("web", after=("db",)), scripts=slow)
    system.start()
    system.run(2.5)
    system.tell(StopWorkers(None))
    system.run(30)
    assert [id_ for _, id_, _ in system.processes.starts] == ["db", "web"]


def test_a_pause_does_not_undo_a_stop_that_waits_for_its_turn() -> None:
    """Found by hypothesis: paused before its turn to stop came, `db` was started by the resume."""
    slow = {"web": lambda _generation: Behaviour(stops_after=2.0)}
    system = SimulatedSystem(worker("db"), worker("web", after=("db",)), scripts=slow)
    system.start()
    system.run(1)
    system.tell(StopWorkers(None))
    system.tell(PauseWorkers(None))
    system.run(10)
    system.tell(ResumeWorkers(None))
    system.run(10)
    assert [system.status(id_).shown for id_ in ("db", "web")] == ["stopped", "stopped"]


def test_a_pause_that_is_over_before_it_could_begin_for_a_worker_holds_no_worker() -> None:
    """The one that others needed was paused when they had stopped, after the pause was over."""
    slow = {"app": lambda _generation: Behaviour(stops_after=5.0)}
    system = SimulatedSystem(worker("db"), worker("app", after=("db",)), scripts=slow).start()
    system.run(1)
    system.tell(PauseWorkers(None, for_s=2.0))
    system.run(60)
    assert [system.status(id_).status for id_ in ("db", "app")] == [Status.HEALTHY, Status.HEALTHY]
    assert started(system) == ["db", "app", "app"]


def test_the_same_where_the_file_names_those_first_who_need_the_other() -> None:
    slow = {"app": lambda _generation: Behaviour(stops_after=5.0)}
    system = SimulatedSystem(worker("app", after=("db",)), worker("db"), scripts=slow).start()
    system.run(1)
    system.tell(PauseWorkers(None, for_s=2.0))
    system.run(60)
    assert started(system) == ["db", "app", "app"]


def test_a_stop_that_an_operator_ordered_outlasts_the_pause_meanwhile() -> None:
    slow = {"app": lambda _generation: Behaviour(stops_after=5.0)}
    system = SimulatedSystem(worker("db"), worker("app", after=("db",)), scripts=slow).start()
    system.run(1)
    system.tell(StopWorkers(("db", "app")))
    system.tell(PauseWorkers(None, for_s=2.0))
    system.run(60)
    assert [system.status(id_).status for id_ in ("db", "app")] == [None, None]


def test_who_waits_for_one_that_is_removed_waits_no_longer() -> None:
    never = {"db": lambda _generation: Behaviour(healthy_after=None)}
    system = SimulatedSystem(worker("app", after=("db",)), worker("db"), scripts=never).start()
    system.run(1)
    system.tell(RemoveWorker("db"))
    system.run(60)
    assert system.status("app").status is Status.HEALTHY


def test_workers_can_be_added_after_one_was_removed_that_another_names() -> None:
    system = SimulatedSystem(worker("app", after=("db",)), worker("db")).start()
    system.run(1)
    system.tell(RemoveWorker("db"))
    system.run(60)
    assert system.ask(lambda reply: AddWorker(worker("other"), reply)) == Done()
    refused = system.ask(lambda reply: AddWorker(worker("late", after=("db",)), reply))
    assert isinstance(refused, Refused)
    assert system.ask(lambda reply: AddWorker(worker("db", after=("app",)), reply)) != Done(), "a circle"
    assert system.ask(lambda reply: AddWorker(worker("db"), reply)) == Done()
