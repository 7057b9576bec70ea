"""Rules by exit code, signal and readiness, through the actors and the store."""

from __future__ import annotations

from tests.virtual.conftest import SystemFactory
from tests.virtual.groups.virtual_groups import crew, group, member, starts
from tests.virtual.simulated_system import W, lives, worker

from rekindle.actors import GroupGivenUp, WorkerFailed
from rekindle.actors.simulation import Behaviour, dies_after
from rekindle.actors.spec.policies.group import Essential

EARLY = Behaviour(dies_after=1.0, healthy_after=5.0)


def test_uncounted_restarts_never_exhaust_a_budget_and_are_not_counted_after_a_restart_of_the_supervisor(
    new_system: SystemFactory,
) -> None:
    asks = {"uncounted_exit_codes": (75,), "max_in_window": 1, "max_lifetime": 1}
    system = new_system(worker(restart=asks), scripts=lives(dies_after(3.0, exit=75)))
    system.start().run(60)
    assert {event.action for event in system.deaths()} == {"restart_uncounted"}
    assert system.delays() == [0.0] * len(system.deaths())
    system.restart_application()
    system.start().run(60)
    assert (system.status().restart_count, system.status().budget.in_window) == (0, 0)


def test_a_hot_loop_of_uncounted_exits_starts_once_a_second(new_system: SystemFactory) -> None:
    system = new_system(
        worker(restart={"uncounted_exit_codes": (75,)}), scripts=lives(dies_after(0.0, exit=75))
    )
    system.start().run(30)
    assert len(system.starts()) == 31


def test_deaths_before_it_was_ready_are_given_up_by_their_own_budget(new_system: SystemFactory) -> None:
    system = new_system(worker(restart={"max_boot_failures": 2, "max_in_window": 1}), scripts=lives(EARLY))
    system.start().run(60)
    [(_, failed)] = system.events(WorkerFailed)
    assert (failed.limit, failed.used, failed.allowed) == ("boot", 2, 2)
    assert [event.death.was_ready for event in system.deaths()] == [False] * 3
    assert system.status().budget.max_boot_failures == 2


def test_a_worker_that_was_given_up_says_by_which_limit(new_system: SystemFactory) -> None:
    system = new_system(worker(restart={"max_in_window": 2}), scripts=lives(dies_after(1.0)))
    system.start().run(60)
    [(_, failed)] = system.events(WorkerFailed)
    assert (failed.limit, failed.used, failed.allowed) == ("window", 2, 2)


def test_a_worker_that_its_group_gave_up_says_so() -> None:
    pair = group("pair", ("a", "b", "c"), strategy="one_for_all", max_in_window=2)
    system = crew(pair, scripts={"b": lives(dies_after(5.0))}).start()
    system.run(60)
    [(_, failed)] = system.events(WorkerFailed)
    assert (failed.limit, failed.used, failed.allowed) == ("group", 2, 2)


def test_an_uncounted_restart_of_a_member_restarts_its_group_and_spends_nothing() -> None:
    asks = member("b", restart={"uncounted_exit_codes": (75,)})
    specs = (member("a"), asks, member("c"))
    trio = group("trio", ("a", "b", "c"), strategy="one_for_all", max_in_window=1)
    system = crew(trio, specs=specs, scripts={"b": lives(dies_after(5.0, exit=75))}).start()
    system.run(30)
    assert system.events(GroupGivenUp) == []
    assert system.report().groups[0].used == 0
    assert [id_ for _, id_ in starts(system)][:6] == ["a", "b", "c", "a", "b", "c"]


def test_an_exit_code_that_means_success_is_no_failure_of_an_essential_worker(
    new_system: SystemFactory,
) -> None:
    settings = {"restart_on": "on_failure", "success_exit_codes": (3,)}
    spec = worker(restart=settings, essential=Essential.ON_FAILURE)
    system = new_system(spec, scripts=lives(dies_after(5.0, exit=3)))
    system.start().run(30)
    assert (system.status().shown, system.status().why) == ("stopped", "finished: exited with code 3")
    assert [event.is_finished for event in system.deaths(W)] == [True]
