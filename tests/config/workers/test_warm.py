"""`warm` and `standby` of a worker: their meaning, their refusals, and how they are shown."""

from __future__ import annotations

from tests.config.files import good, refused, warned

from rekindle.actors import PythonCall, WorkerSpec
from rekindle.actors.processes.spawn.preflight import missing
from rekindle.cli.config.config_text import as_text

APP = """
[worker.app]
python = "app:main"
"""


def test_warm_and_standby_are_shown_as_they_were_set() -> None:
    config = good(f'{APP}count = 2\nwarm = ["app.models"]\nstandby = 2\n')
    assert config.groups[0].template.run == PythonCall("app:main", warm=("app.models",), standby=2)
    assert good(as_text(config)).specs() == config.specs()


def test_a_command_is_neither_warm_nor_has_standbys() -> None:
    assert refused('[worker.app]\ncommand = ["app"]\nwarm = true\nstandby = 1\n') == [
        "workers.toml:3: worker.app.warm = true: is for python functions only: a command is executed",
        "workers.toml:4: worker.app.standby = 1: is for python functions only: a command is executed",
    ]


def test_a_standby_needs_a_warm_process() -> None:
    (told,) = refused(f"{APP}standby = 1\n")
    assert told == "workers.toml:4: worker.app.standby = 1: needs warm: a standby is a fork of a warm process"


def test_a_number_of_standbys_that_makes_no_sense_is_refused_and_one_too_many_is_told() -> None:
    (most,) = refused(f"{APP}warm = true\nstandby = 1000\n")
    assert most == "workers.toml:5: worker.app.standby = 1000: must be between 0 and 64"
    (least,) = refused(f"{APP}warm = true\nstandby = -1\n")
    assert least.startswith("workers.toml:5: worker.app.standby = -1")
    (many,) = warned(f"{APP}warm = true\nstandby = 3\n")
    assert many == (
        "workers.toml:5: warning: worker.app.standby = 3: "
        "is more than can be used at once, even by second deaths: count is 1"
    )
    assert warned(f"{APP}warm = true\nstandby = 2\n") == []


def test_a_list_of_modules_must_name_modules() -> None:
    (told,) = refused(f'{APP}warm = ["app/models.py"]\n')
    assert told.startswith(
        'workers.toml:4: worker.app.warm = ["app/models.py"]: must be true, false or a list'
    )


def test_a_module_that_does_not_exist_is_found_before_anything_starts() -> None:
    spec = WorkerSpec("w", PythonCall("json:loads", warm=("json", "jsson.decoder")))
    (problem,) = missing(spec)
    assert (problem.field, problem.reason) == ("warm", 'there is no module "jsson" on its import path')
