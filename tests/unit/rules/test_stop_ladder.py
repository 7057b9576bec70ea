"""One process's life and the ladder that ends it: SD-05, SC-11, SC-12, F6."""

from __future__ import annotations

from signal import SIGINT, SIGKILL, SIGTERM

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.deaths.death import Exit
from rekindle.actors.rules.stop_ladder import (
    ROOM_RETRY_S,
    STACKS_S,
    Absent,
    Alive,
    Ask,
    AskToDrain,
    BeingStopped,
    Drained,
    Effect,
    FoundNoRoom,
    Gone,
    LadderStep,
    Rung,
    RungElapsed,
    Send,
    ShowStacks,
    Spawn,
    Spawning,
    Started,
    StartOrdered,
    State,
    StopOrdered,
    TellGone,
    TellNotStarted,
    TellUnkillable,
    Terms,
    Trigger,
    Unkillable,
    Wait,
    advance,
    ladder,
)
from rekindle.actors.spec.deployment.drain_policy import DrainPolicy
from rekindle.actors.spec.policies.stop_policy import StopPolicy, Urgency

POLICY = StopPolicy()
TALKING = Terms(POLICY, has_channel=True)
PLAIN = Terms(POLICY, has_channel=False)
KILLS = (Rung(SIGKILL, 1), Rung(SIGKILL, 0.5))


@pytest.mark.parametrize("urgency", [Urgency.GRACEFUL, Urgency.FIRM])
@pytest.mark.parametrize("has_channel", [True, False])
def test_the_signal_of_the_policy_takes_the_place_of_sigterm(urgency: Urgency, has_channel: bool) -> None:
    usual = ladder(POLICY, urgency, has_channel)
    rungs = ladder(StopPolicy(signal="SIGINT"), urgency, has_channel)
    expected = [SIGINT if rung.signal == SIGTERM else rung.signal for rung in usual]
    assert [rung.signal for rung in rungs] == expected
    assert [rung.wait_s for rung in rungs] == [rung.wait_s for rung in usual]


@pytest.mark.parametrize(
    ("urgency", "has_channel", "rungs"),
    [
        pytest.param(
            Urgency.GRACEFUL, True, (Rung(None, 10), Rung(SIGTERM, 2), *KILLS), id="SD-05 ask, TERM, KILL"
        ),
        pytest.param(Urgency.GRACEFUL, False, (Rung(SIGTERM, 10), *KILLS), id="F6 a plain program"),
        pytest.param(Urgency.FIRM, True, (Rung(SIGTERM, 2), *KILLS), id="SC-12 2, 1 and 0.5 seconds"),
        pytest.param(Urgency.FIRM, False, (Rung(SIGTERM, 2), *KILLS), id="SC-12 a plain program"),
        pytest.param(Urgency.KILL, True, KILLS, id="at once"),
        pytest.param(Urgency.KILL, False, KILLS, id="at once, a plain program"),
    ],
)
def test_the_ladder(urgency: Urgency, has_channel: bool, rungs: tuple[Rung, ...]) -> None:
    assert ladder(POLICY, urgency, has_channel) == rungs


def test_a_configured_ladder_is_honoured() -> None:
    rungs = ladder(StopPolicy(ask_s=30, term_s=7, kill_s=3, last_s=0), Urgency.GRACEFUL, has_channel=True)
    assert [rung.wait_s for rung in rungs] == [30, 7, 3, 0]


def climbed(state: State, urgency: Urgency, terms: Terms) -> tuple[State, list[Effect]]:
    """What happens to a process that ends by nothing."""
    step = advance(state, StopOrdered(1, urgency), terms)
    effects = list(step.effects)
    while isinstance(step.state, BeingStopped):
        step = advance(step.state, RungElapsed(1, step.state.step), terms)
        effects += step.effects
    return step.state, effects


def test_sd_05_a_worker_that_ignores_everything_is_asked_then_terminated_then_killed() -> None:
    state, effects = climbed(Alive(1, 77), Urgency.GRACEFUL, TALKING)
    assert effects[:6] == [
        Ask(1),
        Wait(1, 1, 10),
        Send(1, SIGTERM),
        Wait(1, 2, 2),
        Send(1, SIGKILL),
        Wait(1, 3, 1),
    ]
    assert effects[6:] == [Send(1, SIGKILL), Wait(1, 4, 0.5), TellUnkillable(1, 77)]
    assert state == Unkillable(1, 77)


def test_sd_05_the_kill_comes_within_thirteen_seconds() -> None:
    _, effects = climbed(Alive(1, 77), Urgency.GRACEFUL, TALKING)
    before = effects[: effects.index(Send(1, SIGKILL))]
    assert sum(effect.seconds for effect in before if isinstance(effect, Wait)) == 12


def test_sc_12_a_worker_taken_for_dead_is_not_asked() -> None:
    _, effects = climbed(Alive(1, 77), Urgency.FIRM, TALKING)
    assert effects[0] == Send(1, SIGTERM)
    assert [effect.seconds for effect in effects if isinstance(effect, Wait)] == [2, 1, 0.5]


@pytest.mark.parametrize(("steps", "forced"), [(0, None), (1, SIGTERM), (2, SIGKILL), (3, SIGKILL)])
def test_sd_05_the_end_of_a_stopped_process_tells_what_it_took(steps: int, forced: int | None) -> None:
    step = advance(Alive(1, 77), StopOrdered(1, Urgency.GRACEFUL), TALKING)
    for number in range(1, steps + 1):
        step = advance(step.state, RungElapsed(1, number), TALKING)
    gone = advance(step.state, Gone(1, Exit(0)), TALKING)
    assert gone == LadderStep(Absent(), (TellGone(1, Exit(0), forced),))


def test_a_process_that_ends_by_itself_was_not_forced() -> None:
    gone = advance(Alive(1, 77), Gone(1, Exit(signal=11)), TALKING)
    assert gone == LadderStep(Absent(), (TellGone(1, Exit(signal=11), None),))


def test_a_stop_during_the_spawn_is_carried_out_once_the_process_is_there() -> None:
    waiting = advance(Spawning(1), StopOrdered(1, Urgency.FIRM), TALKING)
    assert waiting == LadderStep(Spawning(1, Urgency.FIRM))
    assert advance(waiting.state, Started(1, 77), TALKING).effects == (Send(1, SIGTERM), Wait(1, 1, 2))


@pytest.mark.parametrize("first", Urgency)
@pytest.mark.parametrize("second", Urgency)
def test_the_firmest_stop_during_a_spawn_wins(first: Urgency, second: Urgency) -> None:
    step = advance(Spawning(1, first), StopOrdered(1, second), TALKING)
    assert step.state == Spawning(1, max(first, second))


def test_a_firmer_stop_shortens_the_wait() -> None:
    asked = advance(Alive(1, 77), StopOrdered(1, Urgency.GRACEFUL), TALKING)
    firmer = advance(asked.state, StopOrdered(1, Urgency.KILL), TALKING)
    assert firmer.effects == (Send(1, SIGKILL), Wait(1, 2, 1))
    assert advance(firmer.state, RungElapsed(1, 1), TALKING) == LadderStep(firmer.state)


def test_a_firmer_stop_of_a_process_that_was_sent_sigkill_does_not_go_back_to_sigterm() -> None:
    step = advance(Alive(1, 77), StopOrdered(1, Urgency.GRACEFUL), PLAIN)
    killed = advance(step.state, RungElapsed(1, 1), PLAIN)
    assert killed.effects == (Send(1, SIGKILL), Wait(1, 2, 1))
    assert advance(killed.state, StopOrdered(1, Urgency.FIRM), PLAIN) == LadderStep(killed.state)


@pytest.mark.parametrize("urgency", [Urgency.GRACEFUL, Urgency.FIRM])
def test_a_stop_that_is_not_more_urgent_changes_nothing(urgency: Urgency) -> None:
    stopping = advance(Alive(1, 77), StopOrdered(1, Urgency.FIRM), TALKING).state
    assert advance(stopping, StopOrdered(1, urgency), TALKING) == LadderStep(stopping)


# ── Every state and every trigger ────────────────────────────────────────────────────────

ABSENT, SPAWNING, ALIVE = Absent(), Spawning(2), Alive(2, 77)
STOPPING = BeingStopped(2, 77, Urgency.GRACEFUL, KILLS, step=2, sent=SIGTERM)
UNKILLABLE = Unkillable(2, 77)
STATES: tuple[State, ...] = (ABSENT, SPAWNING, ALIVE, STOPPING, UNKILLABLE)
GONE = TellGone(2, Exit(1), None)
ASKED = BeingStopped(2, 77, Urgency.GRACEFUL, (Rung(SIGTERM, 2), *KILLS), step=1)
KILLED = BeingStopped(2, 77, Urgency.GRACEFUL, KILLS[1:], step=3, sent=SIGKILL)
TABLE: dict[str, tuple[Trigger, tuple[LadderStep | None, ...]]] = {
    # from: absent, spawning, alive, stopping, unkillable; None is ignored
    "start": (StartOrdered(2), (LadderStep(Spawning(2), (Spawn(2),)), None, None, None, None)),
    "start of another": (StartOrdered(3), (LadderStep(Spawning(3), (Spawn(3),)), None, None, None, None)),
    "started": (Started(2, 77), (None, LadderStep(ALIVE), None, None, None)),
    "stop": (
        StopOrdered(2, Urgency.GRACEFUL),
        (
            LadderStep(ABSENT, (TellGone(2, Exit()),)),
            LadderStep(Spawning(2, Urgency.GRACEFUL)),
            LadderStep(ASKED, (Ask(2), Wait(2, 1, 10))),
            None,
            LadderStep(UNKILLABLE, (TellUnkillable(2, 77),)),
        ),
    ),
    "this rung": (
        RungElapsed(2, 2),
        (None, None, None, LadderStep(KILLED, (Send(2, SIGKILL), Wait(2, 3, 1))), None),
    ),
    "an earlier rung": (RungElapsed(2, 1), (None, None, None, None, None)),
    "ended": (
        Gone(2, Exit(1)),
        (
            None,
            LadderStep(ABSENT, (GONE,)),
            LadderStep(ABSENT, (GONE,)),
            LadderStep(ABSENT, (TellGone(2, Exit(1), SIGTERM),)),
            LadderStep(ABSENT, (GONE,)),
        ),
    ),
}


@pytest.mark.parametrize("column", range(5), ids=["absent", "spawning", "alive", "stopping", "unkillable"])
@pytest.mark.parametrize("name", TABLE)
def test_every_trigger_in_every_state(name: str, column: int) -> None:
    trigger, expected = TABLE[name]
    state = STATES[column]
    assert advance(state, trigger, TALKING) == (expected[column] or LadderStep(state))


@pytest.mark.parametrize("generation", [1, 3])
@pytest.mark.parametrize("state", STATES[1:], ids=lambda state: type(state).__name__)
def test_news_of_another_generation_is_ignored(state: State, generation: int) -> None:
    for trigger in (
        StartOrdered(generation),
        Started(generation, 99),
        StopOrdered(generation, Urgency.KILL),
        RungElapsed(generation, 2),
        Gone(generation, Exit(0)),
    ):
        assert advance(state, trigger, TALKING) == LadderStep(state)


# ── Properties ───────────────────────────────────────────────────────────────────────────

GENERATIONS = st.integers(1, 3)
TRIGGERS: st.SearchStrategy[Trigger] = st.one_of(
    st.builds(StartOrdered, GENERATIONS),
    st.builds(Started, GENERATIONS, st.just(77)),
    st.builds(StopOrdered, GENERATIONS, st.sampled_from(Urgency)),
    st.builds(RungElapsed, GENERATIONS, st.integers(0, 5)),
    st.builds(Gone, GENERATIONS, st.just(Exit(0))),
)


@given(triggers=st.lists(TRIGGERS, max_size=60), talks=st.booleans())
def test_there_are_never_two_processes(triggers: list[Trigger], talks: bool) -> None:
    state: State = Absent()
    for trigger in triggers:
        step = advance(state, trigger, Terms(POLICY, talks))
        if any(isinstance(effect, Spawn) for effect in step.effects):
            assert isinstance(state, Absent)
        state = step.state


@given(triggers=st.lists(TRIGGERS, max_size=60), talks=st.booleans())
def test_signals_go_to_the_process_that_is_there_and_to_no_other(
    triggers: list[Trigger], talks: bool
) -> None:
    state: State = Absent()
    for trigger in triggers:
        state, effects = (step := advance(state, trigger, Terms(POLICY, talks))).state, step.effects
        for effect in effects:
            if isinstance(effect, (Ask, Send, Wait)):
                assert isinstance(state, BeingStopped)
                assert effect.generation == state.generation


@given(stops=st.lists(st.sampled_from(Urgency), min_size=1, max_size=20), talks=st.booleans())
def test_however_often_a_stop_is_repeated_the_ladder_ends(stops: list[Urgency], talks: bool) -> None:
    terms, state = (
        Terms(POLICY, talks),
        advance(Alive(1, 77), StopOrdered(1, stops[0]), Terms(POLICY, talks)).state,
    )
    for urgency in stops:
        state = advance(state, StopOrdered(1, urgency), terms).state
        if isinstance(state, BeingStopped):
            state = advance(state, RungElapsed(1, state.step), terms).state
    assert climbed(state, Urgency.KILL, terms)[0] == Unkillable(1, 77)


# ── a worker that hangs says where ───────────────────────────────────────────────────────


def test_a_hung_worker_is_asked_for_its_stacks_before_anything_is_sent() -> None:
    step = advance(Alive(1, 77), StopOrdered(1, Urgency.FIRM, stacks=True), TALKING)
    assert step.effects == (ShowStacks(1), Wait(1, 1, STACKS_S))
    step = advance(step.state, RungElapsed(1, 1), TALKING)
    assert step.effects == (Send(1, SIGTERM), Wait(1, 2, POLICY.term_s))


def test_one_that_ends_after_its_stacks_was_forced_by_no_signal() -> None:
    step = advance(Alive(1, 77), StopOrdered(1, Urgency.FIRM, stacks=True), TALKING)
    assert advance(step.state, Gone(1, Exit(0)), TALKING).effects == (TellGone(1, Exit(0), None),)


@pytest.mark.parametrize("urgency", [Urgency.GRACEFUL, Urgency.KILL])
def test_only_a_firm_end_asks_for_stacks(urgency: Urgency) -> None:
    step = advance(Alive(1, 77), StopOrdered(1, urgency, stacks=True), TALKING)
    assert ShowStacks(1) not in step.effects


def test_a_kill_does_not_wait_for_stacks() -> None:
    step = advance(Alive(1, 77), StopOrdered(1, Urgency.FIRM, stacks=True), TALKING)
    assert advance(step.state, StopOrdered(1, Urgency.KILL), TALKING).effects[0] == Send(1, SIGKILL)


def test_a_start_that_finds_no_room_is_tried_again() -> None:
    waits = advance(Spawning(3), FoundNoRoom(3), PLAIN)
    assert waits == LadderStep(Spawning(3, waits=True), (Wait(3, 0, ROOM_RETRY_S),))
    assert advance(waits.state, RungElapsed(3, 0), PLAIN) == LadderStep(Spawning(3), (Spawn(3),))


@pytest.mark.parametrize(
    ("state", "trigger"),
    [
        (Spawning(3, waits=True), StopOrdered(3, Urgency.GRACEFUL)),
        (Spawning(3, Urgency.GRACEFUL), FoundNoRoom(3)),
    ],
)
def test_a_start_that_waits_for_room_is_called_off_by_a_stop(state: State, trigger: Trigger) -> None:
    assert advance(state, trigger, PLAIN) == LadderStep(Absent(), (TellNotStarted(3), TellGone(3, Exit())))


DRAINING = Terms(StopPolicy(drain=DrainPolicy(within_s=7)), has_channel=True)


def test_a_graceful_stop_begins_with_the_drain_if_the_policy_has_one() -> None:
    rungs = ladder(DRAINING.policy, Urgency.GRACEFUL, has_channel=True)
    assert rungs == (Rung(None, 7, drains=True), *ladder(POLICY, Urgency.GRACEFUL, has_channel=True))
    assert ladder(DRAINING.policy, Urgency.FIRM, True) == ladder(POLICY, Urgency.FIRM, True)


def test_a_drained_worker_is_asked_to_stop_at_once_and_another_one_when_its_time_is_over() -> None:
    draining = advance(Alive(1, 100), StopOrdered(1, Urgency.GRACEFUL), DRAINING)
    assert draining.effects == (AskToDrain(1), Wait(1, 1, 7))
    for end in (Drained(1), RungElapsed(1, 1)):
        asked = advance(draining.state, end, DRAINING)
        assert asked.effects == (Ask(1), Wait(1, 2, 10))
        # What arrives late changes nothing.
        assert advance(asked.state, Drained(1), DRAINING) == LadderStep(asked.state)
        assert advance(asked.state, RungElapsed(1, 1), DRAINING) == LadderStep(asked.state)


def test_a_firmer_stop_ends_a_drain() -> None:
    draining = advance(Alive(1, 100), StopOrdered(1, Urgency.GRACEFUL), DRAINING)
    assert advance(draining.state, StopOrdered(1, Urgency.FIRM), DRAINING).effects[0] == Send(1, SIGTERM)
