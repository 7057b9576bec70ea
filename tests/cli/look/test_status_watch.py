"""`status` on a real terminal: colour, width, `--watch`, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace

from tests.cli.conftest import COMMAND, Client, client_of
from tests.cli.terminals import Terminal, plain
from tests.running.conftest import Running

from rekindle.cli.render.text import cells

HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"
OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h", "\x1b[?1049l"


def test_status_is_coloured_on_a_terminal(every_state: Client) -> None:
    with Terminal(every_state, "status") as terminal:
        assert terminal.end() == 0
        assert "\x1b[32mhealthy\x1b[0m" in terminal.text
        assert "\x1b[31mfailed\x1b[0m" in terminal.text


def test_no_color_means_none(every_state: Client) -> None:
    with Terminal(replace(every_state, environment={"NO_COLOR": "1"}), "status") as terminal:
        assert terminal.end() == 0
        assert "\x1b" not in terminal.text
        assert "healthy" in terminal.text


def test_a_dumb_terminal_has_no_colour(every_state: Client) -> None:
    with Terminal(replace(every_state, environment={"TERM": "dumb"}), "status") as terminal:
        assert terminal.end() == 0
        assert "\x1b" not in terminal.text


def test_no_line_wraps_on_a_narrow_terminal(every_state: Client) -> None:
    for command in ("status",), ("history", "worker:spent:0"):
        with Terminal(every_state, *command, columns=70) as terminal:
            assert terminal.end() == 0
            lines = plain(terminal.text).splitlines()
            assert max(cells(line) for line in lines) <= 70
            assert any(line.endswith("…") for line in lines)


def test_the_watched_status_is_drawn_again_and_ctrl_c_ends_it_with_0(every_state: Client) -> None:
    with Terminal(every_state, "status", "--watch") as terminal:
        first = terminal.read_until(r"\x1b\[J")
        assert HIDDEN in first
        assert OTHER_SCREEN in first
        assert "7 workers: 3 healthy" in plain(first)
        assert "worker:late:0" in plain(terminal.read_until(r"\x1b\[J"))
        terminal.type(b"\x03")
        assert terminal.end() == 0
        assert terminal.text.rindex(SHOWN) > terminal.text.rindex(HIDDEN)
        left = terminal.text[terminal.text.rindex(OWN_SCREEN) + len(OWN_SCREEN) :]
        assert "worker:web:0" in plain(left)
        assert "Traceback" not in terminal.text


def test_a_terminated_watch_gives_the_cursor_back(every_state: Client) -> None:
    with Terminal(every_state, "status", "--watch") as terminal:
        terminal.read_until(r"\x1b\[J")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 0
        assert terminal.text.rindex(SHOWN) > terminal.text.rindex(HIDDEN)


def test_the_watched_status_fits_a_terminal_that_is_made_smaller(every_state: Client) -> None:
    with Terminal(every_state, "status", "--watch", "--wide") as terminal:
        terminal.read_until("worker:chatty:0")
        terminal.resize(30, 6)
        picture = terminal.read_until("and 6 more lines")
        drawn = plain(picture[picture.rindex("\x1b[H") :]).splitlines()
        assert len(drawn) <= 5
        assert max(cells(line) for line in drawn) <= 30


def test_the_watch_shows_only_the_workers_asked_for(every_state: Client) -> None:
    with Terminal(every_state, "status", "--watch", "worker:web:1") as terminal:
        picture = plain(terminal.read_until(r"\x1b\[J"))
        assert "1 worker: 1 healthy" in picture
        assert "worker:web:0" not in picture


def test_the_watch_survives_a_restart_of_the_supervisor(web: Running) -> None:
    with Terminal(client_of(web), "status", "--watch") as terminal:
        terminal.read_until("worker:web:1")
        web.stop()
        terminal.read_until("no supervisor is running; waiting for one")
        again = Running(web.file)
        try:
            terminal.read_until("2 workers: ")
            terminal.read_until("worker:web:1")
            terminal.type(b"\x03")
            assert terminal.end() == 0
        finally:
            again.stop()


def test_the_watch_waits_for_a_supervisor_that_is_not_there_yet(no_supervisor: Client) -> None:
    with Terminal(no_supervisor, "status", "--watch") as terminal:
        terminal.read_until("no supervisor is running; waiting for one")
        terminal.type(b"\x03")
        assert terminal.end() == 0


def test_a_watch_in_a_pipe_steers_nothing(every_state: Client) -> None:
    command = [*COMMAND, "status", "--watch"]
    with subprocess.Popen(command, env=every_state.variables, stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        text = ""
        while text.count("7 workers: ") < 2:
            text += os.read(watching.stdout.fileno(), 65_536).decode()
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
        assert watching.wait(20) == 0
    assert "\x1b" not in text
