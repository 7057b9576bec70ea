"""The evidence of a death as text."""

from __future__ import annotations

from typing import Any

import msgspec

from rekindle.actors.deaths.crash_bundle import bundle_of
from rekindle.actors.deaths.death import Cause, Death, Exit
from rekindle.actors.deaths.evidence import Remains
from rekindle.cli.render.crash_text import bundle_lines

HUNG = Death(
    component_id="w",
    generation=1,
    cause=Cause.HEARTBEAT_LOST,
    detail="3 heartbeats missed",
    uptime_ms=9000,
    probes=("GET http://x failed 2 s ago: answered 503",),
)


def shown(exit_: Exit, remains: Remains | None) -> list[str]:
    document: dict[str, Any] = msgspec.to_builtins(bundle_of(HUNG, 0, exit_, remains))
    return list(bundle_lines(document, 0))


def test_a_process_that_is_still_being_ended_is_said_to_be() -> None:
    lines = shown(Exit(), None)
    assert lines[1].endswith("its process is being ended, and the evidence follows")
    assert "exit           not yet" in lines
    assert not [line for line in lines if "?" in line]


def test_the_whole_evidence_is_shown_once_it_has_ended() -> None:
    lines = shown(Exit(signal=9), Remains(pid=7, sent=9))
    assert "probe          GET http://x failed 2 s ago: answered 503" in lines
    assert "exit           killed by SIGKILL" in lines
    assert [line for line in lines if line.startswith("fingerprint")]
