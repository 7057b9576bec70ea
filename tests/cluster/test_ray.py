"""A real Ray on this machine: two nodes on loopback addresses, whose head dies and comes back."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.cluster.nodes import Nodes, until
from tests.cluster.ray_nodes import HEAD, OTHER, WORKERS, RayNodes, RayUser
from tests.services import PostgresService, unavailable

from rekindle.actors.gateways.ray.ray_node import TOKEN_NAME, token_environment
from rekindle.cli.client import ControlClient, ControlError
from rekindle.cli.state_files import SOCKET_NAME

W = tuple(f"worker:web:{number}" for number in range(WORKERS))


@pytest.mark.timeout(600)
def test_ray_reserves_room_and_its_head_may_die_and_come_back(
    nodes: Nodes, postgres_service: PostgresService
) -> None:
    """One story, since Ray takes long to start."""
    if find_spec("ray") is None:
        unavailable("ray is not installed")
    ray = RayNodes(nodes)
    ray.up()
    _ray_grants_and_denies(ray)
    _a_wrong_secret_is_told_in_a_sentence(ray)
    _another_python_is_told_in_a_sentence(ray)
    _the_head_dies_and_comes_back(ray)
    _another_cluster_attaches_to_the_same_ray(ray, postgres_service)


def _ray_grants_and_denies(ray: RayNodes) -> None:
    """A slot that another user of Ray has taken is not given away, although the node seems to have it."""
    with RayUser(ray) as user:
        user.say("take", ray.ids()["k2"])
        user.say("leak", ray.ids()["k1"])
        ray.nodes.apply("k1")
        until(lambda: ray.placed() == {"k1": 2, "k2": 1, "-": 1}, "three workers to be placed")
        until(lambda: "k2: the engine has no room there" in _why_unplaced(ray), "the reason")
        logs = ray.nodes.log("k1") + ray.nodes.log("k2")
        assert "Ray has no room for slots=1" in logs
        until(lambda: "worker:gone:0" not in user.say("show"), "the leaked reservation to be removed")
        until(lambda: len(user.say("show")) == 3, "a reservation for each worker that runs")
    until(lambda: ray.placed() == {"k1": 2, "k2": 2}, "the last worker to be placed")
    ray.nodes.until_runs(*W)


def _why_unplaced(ray: RayNodes) -> str:
    return next((str(each["why"]) for each in ray.nodes.status()["workers"] if not each["node"]), "")


def _a_wrong_secret_is_told_in_a_sentence(ray: RayNodes) -> None:
    ray.describe("k3", HEAD, 40_000, f'join = ["{ray.head}"]')
    (ray.nodes.folder / "wrong").write_text("another one")
    (ray.nodes.folder / "wrong").chmod(0o600)
    file = ray.nodes.file("k3")
    file.write_text(file.read_text().replace('secret_file = "secret"', 'secret_file = "wrong"'))
    said = ray.nodes.run("cluster", "join", str(file), code=1)
    assert f"the head of Ray at {ray.head} refuses the token" in said


def _another_python_is_told_in_a_sentence(ray: RayNodes) -> None:
    """It is known from a part of Ray that is private, and may change with any of its versions."""
    check = (
        "import platform, sys\n"
        "from rekindle.actors.gateways.ray.head_check import mismatch\n"
        "platform.python_version = lambda: '2.7.18'\n"
        "print(mismatch(sys.argv[1]))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", check, ray.head],
        env={**os.environ, **token_environment(ray.nodes.folder / "k1" / TOKEN_NAME)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    here = platform.python_version()
    assert f"on Python {here}, this machine" in answer.stdout, answer.stderr


def _the_head_dies_and_comes_back(ray: RayNodes) -> None:
    """Nothing stops, what crashes is restarted, and the return of the head changes nothing."""
    before = {id_: [life.token for life in ray.nodes.lives(id_)] for id_ in W}
    places = ray.nodes.places()
    killed = ray.kill_ray("k1")
    crashed = W[0]
    ray.nodes.crash(crashed)
    ray.nodes.until_lives(len(before[crashed]) + 1, crashed)
    until(lambda: ray.pid("k1") not in (None, killed), "the head to start again")
    ray.until_answers("k1", "k2")
    back = time.time()
    ray.nodes.until_runs(*W)
    until(lambda: all(ray.nodes.traces(id_)[-1].at > back + 2.0 for id_ in W), "some time with the head")
    after = {id_: [life.token for life in ray.nodes.lives(id_)] for id_ in W}
    assert {id_: tokens for id_, tokens in after.items() if id_ != crashed} == {
        id_: tokens for id_, tokens in before.items() if id_ != crashed
    }
    assert ray.nodes.places() == places
    with RayUser(ray) as user:
        until(lambda: user.say("show") == sorted(W), "a reservation for each worker")
    ray.nodes.assert_sound(*W)


def _another_cluster_attaches_to_the_same_ray(ray: RayNodes, postgres_service: PostgresService) -> None:
    """Its agents are found if they run already, and are started again when they die."""
    file = ray.nodes.file("attached")
    file.write_text(
        f'database = "{postgres_service.new_database()}"\nstate_dir = "attached"\n'
        '[cluster]\nname = "attached"\nengine = "ray"\nsecret_file = "secret"\n'
    )
    file.chmod(0o600)
    attach = ("cluster", "attach", str(file), "--ray", ray.head)
    assert "refuses the token" in ray.nodes.run(*attach, code=1)
    folder = ray.nodes.folder / "attached"
    with pytest.MonkeyPatch.context() as environment:
        for name, value in token_environment(ray.nodes.folder / "k1" / TOKEN_NAME).items():
            environment.setenv(name, value)
        try:
            for _ in range(2):
                assert sorted(ray.nodes.run(*attach).splitlines()) == [
                    f"{HEAD} is a node",
                    f"{OTHER} is a node",
                ]
            killed = _agent_pid(folder / OTHER)
            assert killed is not None
            # Ray has its own workers killed first when memory runs out.
            assert Path(f"/proc/{killed}/oom_score_adj").read_text() == "0\n"
            assert os.getpriority(os.PRIO_PROCESS, killed) == 0
            os.kill(killed, signal.SIGKILL)
            until(
                lambda: _agent_pid(folder / OTHER) not in (None, killed),
                "the keeper to start the agent again",
            )
        finally:
            for state_dir in folder.iterdir():
                until(lambda: _agent_pid(state_dir), "the agent to answer")  # noqa: B023
                ray.nodes.run("shutdown", "--state", str(state_dir))


def _agent_pid(state_dir: Path) -> int | None:
    """The pid of an agent that answers; the socket of a killed one stays behind."""
    with suppress(ControlError):
        return int(ControlClient(state_dir / SOCKET_NAME).get("/info")["pid"])
    return None
