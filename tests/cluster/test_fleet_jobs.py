"""Jobs in the database of a cluster: any node executes them, and none is lost with a node."""

from __future__ import annotations

import itertools
import os
import random
import signal

import pytest
from tests.cluster import fleet_jobs
from tests.cluster.nodes import Nodes, until

from rekindle.actors.facts.jobs import JobState

JOBS = int(os.environ.get("REKINDLE_FLEET_JOBS", "150"))
"""`scripts/chaos/fleet_jobs` asks for more."""

NAMES = ("k1", "k2", "k3")


def payload(number: int, luck: random.Random) -> dict[str, object]:
    return {"takes_s": luck.uniform(0.02, 0.3), "dies": number % 50 == 25}


def freeze(nodes: Nodes, name: str) -> None:
    """Freeze an agent until its node is lost, and let it join again."""
    nodes.signal(name, signal.SIGSTOP)
    until(lambda: nodes.state(name) == "lost", f"{name} to be lost")
    nodes.signal(name, signal.SIGCONT)
    until(lambda: nodes.hold_leases(name), f"{name} to join again")


def kill(nodes: Nodes, name: str) -> None:
    """Kill an agent, and start it again at once: it may be back within its lease."""
    nodes.kill(name)
    nodes.start(name)
    until(lambda: nodes.hold_leases(name), f"{name} to join again")


@pytest.mark.timeout(400 + JOBS)
def test_no_job_is_lost_and_each_is_recorded_once_while_agents_are_killed_and_frozen(nodes: Nodes) -> None:
    luck = random.Random(JOBS)
    fleet_jobs.declare(nodes, count=3)
    nodes.join(*NAMES)
    fleet_jobs.audit(nodes)
    nodes.apply("k1")
    with fleet_jobs.opened(nodes) as queue:
        jobs = queue.enqueue_many("tally", [payload(number, luck) for number in range(JOBS)])
        until(lambda: len(fleet_jobs.ends(nodes)) > JOBS // 20, "some jobs to end")
        faults = itertools.cycle((freeze, kill))
        while len(fleet_jobs.ends(nodes)) < JOBS * 9 // 10:
            next(faults)(nodes, luck.choice(NAMES))
        until(lambda: all(job.state == JobState.DONE for job in queue.named(jobs)), "all jobs to end")
        evidence = queue.crashes(jobs)
    assert fleet_jobs.ends(nodes) == dict.fromkeys(jobs, 1)
    assert fleet_jobs.claims_of_zombies(nodes) == []
    assert any("was lost" in each.cause for each in evidence)
    nodes.assert_sound(*(f"worker:tally:{number}" for number in range(3)))
