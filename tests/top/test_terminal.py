"""The live view on a real terminal: through tmux where it is there, and on a bare pseudo-terminal."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND, Client
from tests.cli.terminals import Terminal
from tests.processes.waiting import eventually


def test_on_a_terminal_of_80_by_24_with_256_colours_it_is_drawn_and_q_leaves_it(every_state: Client) -> None:
    client = Client(every_state.state, {"TERM": "xterm-256color"})
    with Terminal(client, "top", columns=80, rows=24) as terminal:
        terminal.read_until("worker:web:1")
        terminal.type(b"q")
        assert terminal.end() == 0


def test_inside_tmux_the_keys_work(every_state: Client, tmp_path: Path) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed; the pseudo-terminal test covers the rest")
    server = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]

    def tmux(*words: str) -> str:
        done = subprocess.run([*server, *words], capture_output=True, text=True, env=every_state.variables)
        return done.stdout

    try:
        tmux("new-session", "-d", "-x", "80", "-y", "24", *COMMAND, "top")
        assert eventually(lambda: "worker:web:1" in tmux("capture-pane", "-p"))
        tmux("send-keys", "r")
        assert eventually(lambda: "Restart worker:spent:0?" in tmux("capture-pane", "-p"))
        tmux("send-keys", "n")
        tmux("send-keys", "?")
        assert eventually(lambda: "select a worker" in tmux("capture-pane", "-p"))
        tmux("send-keys", "Enter")
        assert eventually(lambda: "choose a worker" not in tmux("capture-pane", "-p"))
        tmux("send-keys", "q")
        assert eventually(lambda: "no server" in tmux("list-sessions") or tmux("list-sessions") == "")
    finally:
        tmux("kill-server")


def test_without_a_supervisor_it_reports_that_and_exits_3(no_supervisor: Client) -> None:
    answer = no_supervisor("top")
    assert answer.code == 3
    assert "no supervisor" in answer.err
