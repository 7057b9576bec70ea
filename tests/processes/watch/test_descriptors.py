"""The pipes that a worker writes to: everything is read from them, and their end is not a death."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import QUICK, shell
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import Status
from rekindle.actors.processes.spawn.pipes import Descriptors
from rekindle.actors.processes.watch.transcript import MOST_LINES
from rekindle.actors.spec.policies.ready_policy import ReadyPolicy


@contextmanager
def pipes() -> Iterator[Descriptors]:
    """The pipes of a process that has written a line and ended."""
    descriptors = Descriptors.with_output()
    try:
        os.write(descriptors.theirs[0], b"last words\n")
        descriptors.close_theirs()
        yield descriptors
    finally:
        descriptors.close_ours()


def reported(descriptor: int) -> int:
    """What the kernel reports of it now."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return dict(poll.poll(0)).get(descriptor, 0)


def test_the_end_of_a_pipe_loses_nothing(no_traces: None) -> None:
    with pipes() as descriptors:
        stdout, stderr = descriptors.ours
        assert os.read(stdout, 100) == b"last words\n"
        assert (os.read(stdout, 100), reported(stderr)) == (b"", select.POLLHUP)


def test_reading_from_an_empty_pipe_does_not_block(no_traces: None) -> None:
    descriptors = Descriptors.with_output()
    try:
        with pytest.raises(BlockingIOError):
            os.read(descriptors.ours[0], 100)
    finally:
        descriptors.close()


def test_a_worker_that_closes_its_output_is_left_alone_until_it_dies(run: Run, rows: Rows) -> None:
    script = "echo first; exec >&- 2>&-; sleep 0.3; exit 7"
    system = run(shell("w", script, restart=QUICK, ready=ReadyPolicy(after_s=0)))
    assert eventually(lambda: rows.deaths("w"))
    assert rows.deaths("w")[0] == (1, "exited", 7, None, "restart")
    system.wait_until("w", lambda worker: worker.generation > 1, timeout_s=PATIENCE_S)
    assert system.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S).generation > 1


def test_a_quiet_workers_lines_are_followed_beside_a_noisy_ones(run: Run) -> None:
    """The noisy one pushed them out of the shared transcript."""
    noisy = f"sleep 0.3; seq 1 {2 * MOST_LINES}; exec sleep 1000"
    system = run(shell("quiet", "echo hush; exec sleep 1000"), shell("noisy", noisy))
    assert eventually(lambda: system.written("noisy", after=0).newest > 2 * MOST_LINES)
    followed = system.written("quiet", after=0)
    assert ([line.text for line in followed.lines], followed.lost) == (["hush"], 0)
    assert system.written(after=0).lost > 0
    assert [line.text for line in system.written("quiet").lines] == ["hush"]
