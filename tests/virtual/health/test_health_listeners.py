"""Listeners to the health of workers, and hostile numbers in frames: no actor or other listener suffers."""

from __future__ import annotations

import json

import pykka
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.virtual.conftest import SystemFactory
from tests.virtual.health.test_health import SILENT
from tests.virtual.simulated_system import SimulatedSystem, W, ids, uptimes, worker, workers

from rekindle.actors.facts.frames import Frame, decode
from rekindle.actors.messages import (
    ActorReplaced,
    RecordSetAside,
)
from rekindle.actors.messages.internal.to_broker import Subscribe
from rekindle.actors.messages.internal.to_monitor import (
    FrameReceived,
)


class Unwilling:
    """A listener that raises at every message."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def tell(self, message: object) -> None:
        """Raise."""
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit(1), KeyboardInterrupt()], ids=repr)
def test_hm_27_a_listener_that_raises_costs_the_others_nothing(
    new_system: SystemFactory, logs: list[str], error: BaseException
) -> None:
    system = new_system(*workers(2), scripts=uptimes(3))
    system.actors.broker.tell(Subscribe(Unwilling(error)))
    later = type(system.listener)(system.runtime.clock.monotonic)
    system.actors.broker.tell(Subscribe(later))
    system.start().run(60)
    assert later.received == system.listener.received
    assert [system.starts(id_) for id_ in ids(2)] == [[0, 4]] * 2
    assert any("listener" in line or "receiver" in line for line in logs)


NUMBERED = ("recover_for_s", "busy_for_s", "current_job", "progress", "stack_signal")


NUMBERS = st.floats() | st.integers() | st.sampled_from([1e306, -1e306, 5e-324, 2**63, -(2**63), 10**400])


@settings(max_examples=200, deadline=None)
@given(
    frames=st.lists(
        st.fixed_dictionaries(
            {"status": st.sampled_from(["pending", "healthy", "unhealthy", "recovering"])},
            optional=dict.fromkeys(NUMBERED, NUMBERS),
        ),
        max_size=8,
    )
)
def test_f25_no_number_in_a_frame_makes_an_actor_raise(frames: list[dict[str, object]]) -> None:
    system = SimulatedSystem(worker(health={"progress_timeout_s": 5.0}), scripts=SILENT).start()
    for document in frames:
        frame = decode(json.dumps(document).encode())
        if isinstance(frame, Frame):
            system.actors.monitor.tell(FrameReceived(W, 1, frame))
            system.run(1)
    system.run(200)
    assert system.events(ActorReplaced) == []
    assert system.events(RecordSetAside) == []
    system.runtime.close()


class Host(pykka.ThreadingActor):
    """An actor of the application around us."""

    def on_receive(self, message: object) -> None:
        """Take anything."""


def test_hm_27_a_listener_that_has_ended_affects_no_other_listener(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3))
    host = system.runtime.start(Host)
    system.actors.broker.tell(Subscribe(host))
    host.stop(block=False)
    system.start().run(60)
    assert system.starts() == [0, 4]
