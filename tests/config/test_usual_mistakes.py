"""Mistakes that newcomers make, and messages that say what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.config.files import good, refused, warned

from rekindle.actors.processes.spawn.preflight import missing
from rekindle.actors.spec.program import Command
from rekindle.actors.spec.worker_spec import WorkerSpec

WEB = '[worker.web]\ncommand = ["sleep", "1"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            WEB + 'stop = { ask_s = "30s" }',
            'workers.toml:3: worker.web.stop.ask_s = "30s": must be a number of seconds, such as 30',
        ),
        (
            WEB + "restart = {\n  max_in_window = 3\n}",
            (
                "workers.toml:3:12: is not TOML: an inline table must stay on one line; "
                "write it as a table of its own: [worker.web.restart]"
            ),
        ),
        (
            WEB + WEB,
            "workers.toml:3:12: is not TOML: [worker.web] stands twice; the first one is in line 1",
        ),
        (
            "[worker.web]\ncommand = [sleep, 1]",
            'workers.toml:2:12: is not TOML: text needs quotes: "sleep"',
        ),
        (
            WEB + 'restart = "always"',
            (
                'workers.toml:3: worker.web.restart = "always": must be a table: '
                'restart = { restart_on = "always" }'
            ),
        ),
        (
            '[worker.db]\ncommand = ["true"]\n' + WEB + 'after = ["bd"]',
            (
                'workers.toml:5: worker.web.after = ["bd"]: no worker or group is named "bd"; '
                "did you mean 'db'?"
            ),
        ),
        (
            WEB + "replicas = 2",
            (
                "workers.toml:3: worker.web.replicas = 2: is not a known key: "
                "the number of workers is called count"
            ),
        ),
        (
            WEB + 'directory = "/srv"',
            (
                'workers.toml:3: worker.web.directory = "/srv": is not a known key: '
                "the working directory is called cwd"
            ),
        ),
        (
            WEB + "autostart = true",
            (
                "workers.toml:3: worker.web.autostart = true: is not a known key: "
                "every worker of the file is started; count = 0 keeps a group down"
            ),
        ),
        (
            WEB + 'log = "web.log"',
            (
                'workers.toml:3: worker.web.log = "web.log": '
                'must be a table, such as log = { file = "web.log" }'
            ),
        ),
        (
            WEB + "count = 1\ncount = 2\n",
            "workers.toml:4:10: is not TOML: count stands twice in its table",
        ),
        (
            '[[worker]]\nname = "web"\ncommand = ["true"]',
            (
                'workers.toml:1: worker = [{name = "web", command = ["true"]}]: '
                "must be a table for each name: [worker.web] instead of [[worker]]"
            ),
        ),
        (
            WEB + '[[alerts.sink]]\ncommand = ["page"]',
            (
                'workers.toml:3: alerts.sink = [{command = ["page"]}]: '
                "must be a table for each name: [alerts.sink.NAME] instead of [[alerts.sink]]"
            ),
        ),
        (
            "worker:\n  web:\n    command: sleep 1",
            (
                "workers.toml:1:7: is not TOML: this looks like YAML; Rekindle reads TOML, "
                "and rekindle config init FILE writes an example"
            ),
        ),
        (
            '{"worker": {}}',
            (
                "workers.toml:1:1: is not TOML: this looks like JSON; Rekindle reads TOML, "
                "and rekindle config init FILE writes an example"
            ),
        ),
        (
            '[worker.wäb]\ncommand = ["true"]',
            (
                "workers.toml:1:10: is not TOML: 'ä' cannot stand in a name without quotes; "
                "the name of a worker has letters, digits, _ and -, at most 48 of them"
            ),
        ),
        (
            '[worker."wäb"]\ncommand = ["true"]',
            (
                'workers.toml:1: worker."wäb": is not a valid worker name; '
                "the name of a worker has letters, digits, _ and -, at most 48 of them"
            ),
        ),
    ],
)
def test_a_usual_mistake_is_answered_with_what_to_write(text: str, said: str) -> None:
    assert refused(text) == [said]


def test_a_line_for_a_shell_is_recognised() -> None:
    spec = WorkerSpec("w", Command(("sleep 1 && echo hi",)))
    (problem,) = missing(spec)
    assert problem.reason == (
        'there is no program "sleep 1 && echo hi"; a shell line is written as ["sh", "-c", "…"]'
    )


def test_a_folder_is_not_a_program(tmp_path: Path) -> None:
    (problem,) = missing(WorkerSpec("w", Command((str(tmp_path),))))
    assert problem.reason == f'"{tmp_path}" is a folder'


def test_a_tilde_is_the_home_directory_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    (spec,) = good('[worker.a]\ncommand = ["~/bin/run", "~/x"]').specs()
    assert isinstance(spec.run, Command)
    assert spec.run.argv == ("/home/me/bin/run", "~/x")
    assert warned('[worker.a]\ncommand = ["~/bin/run", "~/x"]') == [
        (
            'workers.toml:2: warning: worker.a.command: "~/x" is passed as it is: '
            "~ stands for the home directory in the program only"
        )
    ]


def test_a_command_that_cannot_idle_is_warned_of() -> None:
    assert warned(WEB + 'pause_mode = "idle"') == [
        (
            'workers.toml:3: warning: worker.web.pause_mode = "idle": has no effect: '
            "a command without reports_health cannot be told to idle and runs on"
        )
    ]


def test_a_first_delay_below_the_shortest_is_warned_of() -> None:
    assert warned(WEB + "restart = { initial_delay_s = 0.1 }") == [
        (
            "workers.toml:3: warning: worker.web.restart.initial_delay_s = 0.1: is less than min_delay_s, "
            "which takes precedence: no delay is below 1 s"
        )
    ]
    assert warned(WEB + "restart = { initial_delay_s = 0.1, min_delay_s = 0.1 }") == []
    assert len(warned(WEB + "restart = { initial_delay_s = 0 }")) == 1
    assert warned(WEB + "restart = { initial_delay_s = 0, min_delay_s = 0 }") == []


def test_a_recipe_without_the_folder_of_the_tracker_is_warned_of() -> None:
    """Nothing was released, and nothing said so."""
    assert warned(WEB + 'release = { recipe = "br" }') == [
        (
            "workers.toml:3: warning: worker.web.release.recipe: "
            "has no effect without cwd, the folder of the tracker"
        )
    ]
    assert warned(WEB + 'release = { recipe = "br", cwd = "/srv/tracker" }') == []
