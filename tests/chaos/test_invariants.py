"""Every rule can be broken: a history that was tampered with is distinguished from one that was not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed

import pytest
from msgspec.structs import replace
from tests.chaos.sample_scenarios import play

from rekindle.actors.simulation import RULES, Scenario, Slack, dies_after, runs, violations
from rekindle.actors.simulation.scenarios.history import (
    AnyEntry,
    Concluded,
    Counted,
    Decided,
    Ended,
    EventPublished,
    FinalReport,
    History,
    Ordered,
    Overlapped,
    Stored,
    StreakEnded,
    TimerSet,
)

TAG = "tag"
CRASHES = Scenario("crashes", lasts_s=30).worker(TAG, dies_after(3))
SPECS = [role.spec for role in CRASHES.roles]

Tamper = Callable[[list[AnyEntry]], None]


def broken_rules(entries: list[AnyEntry]) -> set[str]:
    """The names of the rules that this history breaks."""
    return {violation.rule for violation in violations(entries, SPECS)}


def history() -> list[AnyEntry]:
    """What really happens to a worker that dies 3 s after every start, for half a minute."""
    return play(CRASHES).history.entries


def test_a_history_that_was_not_tampered_with_breaks_no_rule() -> None:
    assert broken_rules(history()) == set()


def first(entries: list[AnyEntry], kind: type[AnyEntry], number: int = 0) -> int:
    """Where the entry of this kind with this number stands."""
    return [index for index, entry in enumerate(entries) if isinstance(entry, kind)][number]


def change(kind: type[AnyEntry], number: int = 0, **fields: object) -> Tamper:
    """Say something else in an entry."""

    def tamper(entries: list[AnyEntry]) -> None:
        index = first(entries, kind, number)
        entries[index] = replace(entries[index], **fields)

    return tamper


def drop(kind: type[AnyEntry], number: int = 0) -> Tamper:
    """Leave an entry out."""

    def tamper(entries: list[AnyEntry]) -> None:
        del entries[first(entries, kind, number)]

    return tamper


def repeat(kind: type[AnyEntry], number: int = 0, **fields: object) -> Tamper:
    """Say an entry twice, the second time with a change."""

    def tamper(entries: list[AnyEntry]) -> None:
        index = first(entries, kind, number)
        entries.insert(index + 1, replace(entries[index], **fields))

    return tamper


def add(entry: AnyEntry) -> Tamper:
    """Say something more, at its time."""

    def tamper(entries: list[AnyEntry]) -> None:
        index = next((i for i, each in enumerate(entries) if each.at > entry.at), len(entries))
        entries.insert(index, entry)

    return tamper


def both(one: Tamper, other: Tamper) -> Tamper:
    """Tamper twice."""

    def tamper(entries: list[AnyEntry]) -> None:
        one(entries)
        other(entries)

    return tamper


def told(number: int, event: str) -> Tamper:
    """Leave out an event of this kind."""

    def tamper(entries: list[AnyEntry]) -> None:
        found = [each for each in entries if isinstance(each, EventPublished) and each.event == event]
        entries.remove(found[number])

    return tamper


def stored_death(**fields: object) -> Tamper:
    """Say something else of the first death in the store."""

    def tamper(entries: list[AnyEntry]) -> None:
        deaths = [each for each in entries if isinstance(each, Stored) and each.kind == "death"]
        entries[entries.index(deaths[0])] = replace(deaths[0], **fields)

    return tamper


TAMPERINGS: dict[str, list[Tamper]] = {
    "lives never overlap": [drop(Ended), add(Overlapped(1.0, TAG, 99))],
    "no start while stopping, paused or failed": [
        add(Ordered(3.5, "stop", TAG)),
        add(Ordered(3.5, "pause", TAG)),
        add(Ordered(3.5, "pause")),
        add(Ordered(3.5, "shutdown")),
        change(Decided, action="mark_failed"),
    ],
    "no orphan": [change(Concluded, left=(TAG,))],
    "every death once, with its cause": [
        repeat(Decided, action="mark_failed"),
        change(Decided, cause="signalled", code=None, signal=9),
        change(Decided, cause="heartbeat_lost", silent_s=3.0),
        change(Decided, cause="spawn_failed"),
        change(Decided, cause="protocol"),
        change(Decided, generation=77),
        change(Ended, by="supervisor"),
        add(Decided(1.0, TAG, 1, "exited", 1, None, "restart", 1000)),
    ],
    "no death forgotten": [drop(Decided, 2)],
    "stored as decided": [change(Stored, 1, action="mark_failed"), drop(Decided)],
    "counters equal the history": [
        change(Counted, restart_count=7),
        change(Counted, streak_count=0),
        change(Counted, failed=True),
        change(FinalReport, restart_count=0),
        drop(Stored, 1),
    ],
    "nothing decided is lost": [drop(Stored, 1), change(Decided, 2, action="mark_failed")],
    "limits never exceeded": [
        add(StreakEnded(3.5, TAG)),
        lambda entries: (
            entries.__setitem__(
                slice(None), [e for e in entries if not isinstance(e, Decided) or e.action != "mark_failed"]
            )
            or add(Decided(4.1, TAG, 2, "exited", 1, None, "restart", 0, streak_cleared=True))(entries)
        ),
    ],
    "at most one pending restart": [repeat(TimerSet)],
    "liveness": [
        change(FinalReport, shown="stopped", status=None, alive=False),
        change(FinalReport, shown="crashed", next_attempt_s=-1.0, alive=False),
        change(FinalReport, shown="crashed", next_attempt_s=500.0, alive=False),
        change(FinalReport, shown="starting", status="pending", alive=True, stable=True),
        both(add(Ordered(30.2, "stop", TAG)), change(FinalReport, shown="healthy", alive=True)),
    ],
    "no restart before its delay is over": [change(Decided, delay_ms=60_000)],
    "events gapless and in order": [
        told(0, "status_changed"),
        repeat(EventPublished),
        change(EventPublished, generation=9),
        change(EventPublished, 1, new="unhealthy"),
    ],
    "no event missing": [told(-1, "worker_died")],
}


def test_every_rule_has_a_history_that_breaks_it() -> None:
    assert TAMPERINGS.keys() == RULES.keys()


CASES = [(rule, number) for rule, tampers in TAMPERINGS.items() for number in range(len(tampers))]


@pytest.mark.parametrize(("rule", "number"), CASES)
def test_a_rule_is_broken_by_a_history_that_was_tampered_with(rule: str, number: int) -> None:
    entries = history()
    TAMPERINGS[rule][number](entries)
    assert rule in broken_rules(entries)


def limited(**restart: object) -> Scenario:
    return Scenario("limited", lasts_s=60).worker(TAG, dies_after(3), restart=restart)


@pytest.mark.parametrize(
    "stricter",
    [
        {"max_lifetime": 2},
        {"max_consecutive": 2},
        {"max_in_window": 2},
        {"max_in_window": 2, "window_mode": "sliding"},
        {"enabled": False},
    ],
)
def test_a_restart_beyond_any_limit_is_seen(stricter: dict[str, object]) -> None:
    """The worker was supervised without a limit, and is held against one."""
    free = {"max_in_window": None, "max_lifetime": None}
    entries = play(limited(**free)).history.entries
    strict = [role.spec for role in limited(**{**free, **stricter}).roles]
    broken = {violation.rule for violation in violations(entries, strict)}
    assert broken == {"limits never exceeded", "decisions follow the policy"}


def test_a_real_run_is_given_the_time_that_a_machine_needs() -> None:
    entries = history()
    add(Ordered(3.5, "stop", TAG))(entries)
    rules = {violation.rule for violation in violations(entries, SPECS, Slack(order_s=100.0))}
    assert "no start while stopping, paused or failed" not in rules


def test_a_host_that_sleeps_while_an_actor_is_replaced_leaves_the_actor_its_time() -> None:
    outcome = play(
        changed(CRASHES, lasts_s=120)
        .at(2).actor_raises("recorder")
        .at(2.5).host_sleep(60)
        .at(20).actor_raises("recorder")
        .at(21).host_sleep(21.5)
    )  # fmt: skip
    assert outcome.violations == ()


def test_heartbeats_that_a_slow_worker_did_not_send_do_not_count_as_sent() -> None:
    """Their interval becomes the usual one again while the host sleeps."""
    slow = Scenario("slow", lasts_s=60).worker(
        TAG, runs(), health={"heartbeat_interval_s": 2.5, "staleness_s": 3.0, "max_misses": 2}
    )
    outcome = play(slow.at(10).slow_heartbeats(TAG, every_s=20, for_s=5.8).at(15.5).host_sleep(1.0))
    [death] = [each for each in outcome.history.entries if isinstance(each, Decided)]
    assert (death.cause, death.silent_s) == ("heartbeat_lost", 6.5)
    assert outcome.violations == ()


def test_a_violation_names_its_rule_its_time_and_its_entry() -> None:
    entries = history()
    entries.insert(3, Overlapped(0.0, TAG, 99))
    (violation,) = violations(entries, SPECS)
    assert (violation.rule, violation.at, violation.entry) == ("lives never overlap", 0.0, 3)
    assert (
        str(violation) == "lives never overlap: two processes of tag at once: pid 99 found another (at 0 s)"
    )


def test_a_history_survives_its_own_encoding() -> None:
    from rekindle.actors.simulation.scenarios.history import decoded

    written = History(history()).encoded()
    assert History(decoded(written.splitlines())).encoded() == written


def test_a_scenario_is_a_value() -> None:
    assert changed(CRASHES, lasts_s=30) == CRASHES
    assert CRASHES.at(1).kill(TAG) != CRASHES
