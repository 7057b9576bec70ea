"""The telling cases of OTP's supervisor_SUITE about strategies, named as they are named there."""

from __future__ import annotations

from tests.virtual.groups.virtual_groups import crew, group, healthy, member, running, starts, stopped
from tests.virtual.simulated_system import lives, uptimes

from rekindle.actors import GroupRestarting, WorkerFailed, WorkerStopped
from rekindle.actors.messages import RestartWorker, StopWorkers, WorkerStopping
from rekindle.actors.simulation import Behaviour, dies_after, exits, ignores_term, runs

ALL = group("pair", ("a", "b", "c"), strategy="one_for_all")
REST = group("pair", ("a", "b", "c"), strategy="rest_for_one")
ONE = group("pair", ("a", "b", "c"))

SLOW = lives(Behaviour(healthy_after=2.0))
ONCE_MORE = uptimes(10.0)
"""Dies ten seconds after its first start, and lives on after that."""


def test_sup_start_normal_members_start_in_order_each_when_the_former_is_healthy() -> None:
    for pair in (ONE, ALL, REST):
        system = crew(pair, scripts=dict.fromkeys("abc", SLOW)).start()
        system.run(10)
        assert starts(system) == [(0.0, "a"), (2.0, "b"), (4.0, "c")]
        system.close()


def test_sup_start_normal_the_order_is_that_of_the_members_not_of_the_declarations() -> None:
    pair = group("pair", ("c", "a", "b"), strategy="one_for_all")
    system = crew(pair, scripts=dict.fromkeys("abc", SLOW)).start()
    system.run(10)
    assert starts(system) == [(0.0, "c"), (2.0, "a"), (4.0, "b")]


def test_sup_start_fail_a_member_that_cannot_start_ends_those_before_it_before_the_next_try() -> None:
    scripts = {"b": lives(dies_after(1.0), then=runs())}
    system = crew(ALL, scripts=scripts).start()
    system.run(20)
    assert stopped(system) == ["c", "a"]
    assert healthy(system) == {"a", "b", "c"}


def test_sup_stop_infinity_members_stop_in_reverse_order_each_when_the_one_after_it_has_ended() -> None:
    system = crew(ONE, scripts=dict.fromkeys("abc", lives(Behaviour(stops_after=2.0)))).start()
    system.run(1)
    system.shut_down()
    assert [(at, event.component_id) for at, event in system.events(WorkerStopped)] == [
        (3.0, "c"),
        (5.0, "b"),
        (7.0, "a"),
    ]


def test_sup_stop_brutal_kill_a_member_that_ignores_its_stop_is_killed_and_the_group_restarts() -> None:
    system = crew(ALL, scripts={"a": ONCE_MORE, "c": lives(ignores_term(), then=runs())}).start()
    system.run(60)
    [killed] = [event for _, event in system.events(WorkerStopped) if event.component_id == "c"]
    assert killed.forced == 9
    assert system.starts("a")[1] >= system.ends("c")[0], "nothing starts before the last one has ended"
    assert healthy(system) == {"a", "b", "c"}


def test_one_for_one_only_the_dead_member_restarts() -> None:
    system = crew(ONE, scripts={"b": ONCE_MORE}).start()
    system.run(30)
    assert starts(system) == [(0.0, "a"), (0.0, "b"), (0.0, "c"), (11.0, "b")]
    assert stopped(system) == []


def test_one_for_all_the_others_stop_in_reverse_order_and_all_start_in_order() -> None:
    scripts = {"b": lives(dies_after(10.0), then=Behaviour(healthy_after=2.0)), "a": SLOW, "c": SLOW}
    system = crew(ALL, scripts=scripts).start()
    system.run(60)
    died = 2.0 + 10.0
    assert stopped(system) == ["c", "a"]
    again = [(at, id_) for at, id_ in starts(system) if at > died]
    assert again == [(died + 1, "a"), (died + 3, "b"), (died + 5, "c")]


def test_one_for_all_whichever_member_dies() -> None:
    for culprit in "abc":
        system = crew(ALL, scripts={culprit: ONCE_MORE}).start()
        system.run(30)
        assert stopped(system) == [id_ for id_ in "cba" if id_ != culprit]
        assert starts(system)[3:] == [(11.0, "a"), (11.0, "b"), (11.0, "c")]
        system.close()


def test_one_for_all_nobody_starts_before_the_slowest_has_stopped() -> None:
    slow_stop = lives(Behaviour(stops_after=5.0), then=runs())
    system = crew(ALL, scripts={"a": ONCE_MORE, "c": slow_stop}).start()
    system.run(12)
    assert running(system) == {"b", "c"}, "b waits for c, which is still stopping"
    assert system.status("a").waits_for == ("b", "c")
    system.run(30)
    assert starts(system)[3:] == [(15.0, "a"), (15.0, "b"), (15.0, "c")]


def test_rest_for_one_an_operator_who_stops_a_member_that_ends_anyway_speeds_up_no_start() -> None:
    """The order took the place of the reason why it ends, and the dead one started beside it."""
    line = group("line", ("a", "b", "c"), strategy="rest_for_one")
    scripts = {"b": uptimes(5.0), "c": lives(Behaviour(stops_after=4.0))}
    system = crew(line, scripts=scripts).start()
    system.run_to(5.5)
    system.tell(StopWorkers(("c",)))
    system.run_to(30)
    assert [at for at, id_ in starts(system) if id_ == "b"] == [0.0, 9.0]
    assert running(system) == {"a", "b"}


def test_rest_for_one_those_after_the_dead_one_stop_in_reverse_order_and_start_in_order() -> None:
    system = crew(REST, scripts={"b": ONCE_MORE}).start()
    system.run(30)
    assert stopped(system) == ["c"]
    assert starts(system)[3:] == [(11.0, "b"), (11.0, "c")]


def test_rest_for_one_the_last_takes_nobody_along_and_the_first_everybody() -> None:
    for culprit, along in (("c", []), ("a", ["c", "b"])):
        system = crew(REST, scripts={culprit: ONCE_MORE}).start()
        system.run(30)
        assert stopped(system) == along
        system.close()


def test_one_for_all_other_child_fails_restart_ends_the_others_again_before_the_next_try() -> None:
    """`b` dies, and `c` fails to restart twice: the group never runs without it for longer than it tries."""
    fails = lives(runs(), dies_after(0.5), dies_after(0.5), then=runs())
    system = crew(ALL, scripts={"b": ONCE_MORE, "c": fails}).start()
    system.run(60)
    assert stopped(system) == ["c", "a", "b", "a", "b", "a"]
    assert healthy(system) == {"a", "b", "c"}
    assert [event.component_id for _, event in system.events(GroupRestarting)] == ["b", "c", "c"]


def test_rest_for_one_other_child_fails_restart_leaves_those_before_it_alone() -> None:
    fails = lives(runs(), dies_after(0.5), dies_after(0.5), then=runs())
    system = crew(REST, scripts={"a": ONCE_MORE, "b": fails}).start()
    system.run(60)
    assert [id_ for _, id_ in starts(system)[3:]] == ["a", "b", "c", "b", "c", "b", "c"]
    assert healthy(system) == {"a", "b", "c"}


def test_permanent_normal_an_exit_with_0_restarts_the_group() -> None:
    system = crew(ALL, scripts={"a": lives(exits(0, after_s=5.0), then=runs())}).start()
    system.run(30)
    assert stopped(system) == ["c", "b"]


def test_transient_normal_a_member_that_finished_leaves_the_others_alone() -> None:
    specs = (member("a", restart={"restart_on": "on_failure"}), member("b"), member("c"))
    system = crew(ALL, specs=specs, scripts={"a": lives(exits(0, after_s=5.0))}).start()
    system.run(30)
    assert stopped(system) == []
    assert running(system) == {"b", "c"}


def test_transient_abnormal_a_member_that_crashes_restarts_the_group() -> None:
    specs = (member("a", restart={"restart_on": "on_failure"}), member("b"), member("c"))
    system = crew(ALL, specs=specs, scripts={"a": ONCE_MORE}).start()
    system.run(30)
    assert stopped(system) == ["c", "b"]


def test_transient_normal_a_member_that_finished_starts_again_with_its_group() -> None:
    specs = (member("a", restart={"restart_on": "on_failure"}), member("b"), member("c"))
    scripts = {"a": lives(exits(0, after_s=5.0)), "b": ONCE_MORE}
    system = crew(ALL, specs=specs, scripts=scripts).start()
    system.run(12)
    assert len(system.starts("a")) == 2
    assert running(system) == {"a", "b", "c"}


def test_temporary_abnormal_is_not_restarted_and_takes_nobody_along() -> None:
    specs = (member("a"), member("b", restart={"restart_on": "never"}), member("c"))
    for pair in (ALL, REST):
        system = crew(pair, specs=specs, scripts={"b": ONCE_MORE}).start()
        system.run(60)
        assert len(starts(system)) == 3
        assert stopped(system) == []
        assert system.report().groups[0].used == 0
        system.close()


def test_temporary_bystander_is_stopped_with_its_group_and_stays_down() -> None:
    specs = (member("a"), member("b", restart={"restart_on": "never"}), member("c"))
    for pair in (ALL, REST):
        system = crew(pair, specs=specs, scripts={"a": ONCE_MORE}).start()
        system.run(60)
        assert set(stopped(system)) == {"b", "c"}
        assert healthy(system) == {"a", "c"}, "nothing waits for a worker that does not return"
        assert system.status("b").shown == "stopped"
        system.close()


def test_a_sibling_is_not_counted_not_blamed_and_told_why() -> None:
    system = crew(ALL, scripts={"a": ONCE_MORE}).start()
    system.run(30)
    assert system.status("b").restart_count == 0
    assert system.deaths("b") == []
    asked = [event for _, event in system.events(WorkerStopping)]
    assert [(event.component_id, event.reason, event.because) for event in asked] == [
        ("c", "group_restart", "a"),
        ("b", "group_restart", "a"),
    ]
    assert system.events(WorkerFailed) == []


def test_members_that_die_in_the_same_moment_are_one_restart_of_the_group() -> None:
    system = crew(ALL, scripts=dict.fromkeys("abc", ONCE_MORE)).start()
    system.run(30)
    assert healthy(system) == {"a", "b", "c"}
    assert len(starts(system)) == 6
    assert system.report().groups[0].used <= 2


def test_a_restart_by_hand_of_one_member_leaves_the_others_alone() -> None:
    system = crew(ALL).start()
    system.run(1)
    system.tell(RestartWorker("b"))
    system.run(10)
    assert stopped(system) == ["b"]
    assert [id_ for _, id_ in starts(system)[3:]] == ["b"]


def test_the_workers_of_one_table_share_a_position() -> None:
    specs = (
        member("worker:db:0", group="db"),
        *(member(f"worker:api:{n}", group="api") for n in range(2)),
        member("worker:web:0", group="web"),
    )
    pair = group("site", ("db", "api", "web"), strategy="rest_for_one")
    system = crew(pair, specs=specs, scripts={"worker:api:0": ONCE_MORE}).start()
    system.run(30)
    assert stopped(system) == ["worker:web:0"]
    assert len(system.starts("worker:api:1")) == 1


def test_one_for_all_waits_for_a_delay_of_the_former_run_before_any_member_starts() -> None:
    slow_c = (member("a"), member("b"), member("c", restart={"initial_delay_s": 30.0}))
    system = crew(ALL, specs=slow_c, scripts={"c": ONCE_MORE}).start()
    system.run(20)
    system.restart_application()
    system.start()
    system.run(5)
    assert starts(system) == []
    system.run(60)
    assert healthy(system) == {"a", "b", "c"}
