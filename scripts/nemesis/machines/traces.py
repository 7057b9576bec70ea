"""Pure: the signs of life that workers write, and the processes that they tell of.

A line is `seconds node pid token`, and `crash` at its end if the worker then exits by itself. The kernel
writes a line as a whole, and all machines share the clock that is written: the truth of a run is what is in
these files, whatever the cluster believes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

BEAT_S = 0.05

WORKER = """
exec 9<> <(:)
say() {{ echo "$EPOCHREALTIME $REKINDLE_NODE $$ $REKINDLE_TOKEN$1" >> "{folder}/$REKINDLE_WORKER.trace"; }}
while :; do
  if [ -e "{folder}/$REKINDLE_WORKER.crash" ]; then
    rm "{folder}/$REKINDLE_WORKER.crash"; say " crash"; exit 3
  fi
  if ((RANDOM < {share})); then say " crash"; exit 3; fi
  say ""
  read -rt 0.05 -u 9
done
"""
"""For `bash -c`: writes a line each beat, and crashes at random or when it is told to. It starts no process:
a beat costs next to nothing."""


class Life(NamedTuple):
    """One process of a worker."""

    began: float
    last: float
    """Its last sign of life."""
    node: str
    token: int
    has_crashed: bool
    """It says that it ends by itself."""
    beats: tuple[float, ...]


def lives(lines: Iterable[str]) -> list[Life]:
    """The processes of one worker, in the order in which they began."""
    beats: dict[int, list[float]] = {}
    nodes: dict[int, str] = {}
    crashed: set[int] = set()
    for line in lines:
        words = line.split()
        if len(words) < 4:
            continue  # The power failed while it was written.
        token = int(words[3])
        beats.setdefault(token, []).append(float(words[0]))
        nodes[token] = words[1]
        if words[4:] == ["crash"]:
            crashed.add(token)
    found = [
        Life(times[0], times[-1], nodes[token], token, token in crashed, tuple(times))
        for token, times in beats.items()
    ]
    return sorted(found, key=lambda life: life.began)
