"""How an agent is started on each machine of a Ray that was there before."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes.waiting import eventually

from rekindle.actors.gateways.ray.agent_keeper import KEPT, LOCK, LOG
from rekindle.actors.gateways.ray.attached_machines import join_arguments, names
from rekindle.actors.gateways.ray.link_frames import RayMachine
from rekindle.actors.gateways.ray.ray_node import attached_link
from rekindle.actors.gateways.settings.ray_attachment import Attachment
from rekindle.actors.spec.program import Command

ATTACHMENT = Attachment(ray="10.0.0.1:6379", file="/etc/prod.toml", state_dir="/var/lib/r", port=8378)
A = RayMachine(ray_id="a", address="10.0.0.1", host="gpu-1")
B = RayMachine(ray_id="b", address="10.0.0.2", host="gpu-2")


def test_a_machine_has_the_name_of_its_host() -> None:
    assert names([A, B]) == {"10.0.0.1": "gpu-1", "10.0.0.2": "gpu-2"}
    assert join_arguments(ATTACHMENT, A, "gpu-1") == (
        "cluster",
        "join",
        "/etc/prod.toml",
        "--ray=10.0.0.1:6379",
        "--listen=10.0.0.1:8378",
        "--node=gpu-1",
        "--state=/var/lib/r",
    )


def test_two_nodes_of_ray_on_one_host_have_names_and_state_directories_of_their_own() -> None:
    same = RayMachine(ray_id="c", address="fd00::3", host="gpu-1")
    found = names([A, B, same])
    assert found == {"10.0.0.1": "10.0.0.1", "10.0.0.2": "gpu-2", "fd00::3": "fd00--3"}
    words = join_arguments(ATTACHMENT, same, found[same.address])
    assert {"--listen=[fd00::3]:8378", "--node=fd00--3", "--state=/var/lib/r/fd00--3"} <= set(words)


@pytest.mark.parametrize(("code", "lives"), [(0, 1), (2, 1), (1, 3)])
def test_a_keeper_starts_an_agent_again_unless_it_was_shut_down_or_cannot_read_its_file(
    tmp_path: Path, code: int, lives: int
) -> None:
    agent = ("sh", "-c", f"echo lives; [ $(wc -l < {tmp_path / LOG}) -ge 3 ] && exit 0; exit {code}")
    module = "rekindle.actors.gateways.ray.agent_keeper"
    subprocess.run([sys.executable, "-m", module, str(tmp_path), *agent], check=True, timeout=60)
    assert eventually(lambda: (tmp_path / LOG).exists() and _has_ended(tmp_path))
    assert (tmp_path / LOG).read_text().splitlines() == ["lives"] * lives


@pytest.mark.parametrize("kept", [True, False])
def test_only_an_agent_with_a_keeper_has_agents_started_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Where a service manager stopped an agent, Ray started another one beside it."""
    monkeypatch.setenv(KEPT, "1")
    if not kept:
        monkeypatch.delenv(KEPT)
    program = attached_link(tmp_path, ATTACHMENT, "prod").run
    assert isinstance(program, Command)
    assert ("/etc/prod.toml" in " ".join(program.argv)) is kept


def _has_ended(folder: Path) -> bool:
    """Whether no keeper has the folder."""
    with (folder / LOCK).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
