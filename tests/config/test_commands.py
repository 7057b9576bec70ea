"""`rekindle config`, as a person or a script uses it."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.config.files import good

from rekindle.actors.views.redaction import masked, masked_words
from rekindle.cli.config import load, parse, schema
from rekindle.cli.config.config_text import as_text
from rekindle.cli.config.starter import STARTER
from rekindle.cli.main import main

BAD = '[worker.a]\ncommand = ["true"]\ncount = -1\nsurprise = true\n'
SECRETS = """
database = "postgresql://me:hunter2@db/x"
[worker.a]
command = ["run", "--token", "hunter2", "--api-key=hunter2", "redis://:hunter2@h/0", "--port", "1"]
env = { DB_PASSWORD = "hunter2", AWS_SECRET_ACCESS_KEY = "hunter2", DSN_URL = "hunter2", TZ = "UTC" }
"""


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["config", *map(str, words)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "workers.toml"


def test_a_valid_file_is_reported_as_valid(file: Path) -> None:
    file.write_text(STARTER)
    result = run("check", file)
    assert (result.exit_code, result.output) == (0, f"{file}: 3 workers, no problems\n")


def test_warnings_are_shown_and_do_not_fail(file: Path) -> None:
    file.write_text("")
    result = run("check", file)
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f"{file}: warning: does not declare any workers: nothing will run",
        f"{file}: 0 workers, 1 warning",
    ]


MISSING = """\
[worker.typo]
command = ["pyhton3", "-V"]
[worker.lost]
command = ["true"]
cwd = "/does/not/exist"
[worker.nobody]
command = ["true"]
user = "nosuchuser"
[worker.module]
python = "nosuchmodule:f"
[worker.part]
python = "rekindle.nosuch.x:f"
[worker.file]
command = ["./nosuchfile"]
[worker.text]
command = ["./workers.toml"]
"""


def test_what_a_worker_needs_and_is_not_there_is_warned_of(file: Path) -> None:
    file.write_text(MISSING)
    result = run("check", file)
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f'{file}:2: warning: worker.typo.command: there is no program "pyhton3" on its PATH',
        f'{file}:5: warning: worker.lost.cwd: there is no folder "/does/not/exist"',
        f'{file}:8: warning: worker.nobody.user: there is no user "nosuchuser"',
        f'{file}:10: warning: worker.module.python: there is no module "nosuchmodule" on its import path',
        f'{file}:12: warning: worker.part.python: there is no module "rekindle.nosuch" on its import path',
        f'{file}:14: warning: worker.file.command: there is no file "./nosuchfile"',
        f'{file}:16: warning: worker.text.command: there is no file "./workers.toml"',
        f"{file}: 7 workers, 7 warnings",
    ]


def test_a_file_that_a_worker_with_a_user_does_not_find_in_its_home_is_warned_of(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check looked in its own folder, and such a worker starts in its home."""
    monkeypatch.chdir(file.parent)
    user = pwd.getpwuid(os.geteuid())
    for name in ("only_here.sh", "only_here.py"):
        Path(name).touch(mode=0o755)
    file.write_text(f"""
[defaults]
user = "{user.pw_name}"
[worker.a]
command = ["./only_here.sh"]
[worker.b]
command = ["sh", "only_here.sh", "--verbose"]
[worker.c]
python = "only_here:main"
[worker.d]
command = ["./only_here.sh"]
cwd = "."
""")
    home = f"without cwd a worker with a user starts in {user.pw_dir}"
    assert run("check", file).output.splitlines() == [
        f'{file}:5: warning: worker.a.command: there is no file "./only_here.sh": {home}',
        f'{file}:7: warning: worker.b.command: there is no file "only_here.sh": {home}',
        f'{file}:9: warning: worker.c.python: there is no module "only_here" on its import path: {home}',
        f"{file}: 4 workers, 3 warnings",
    ]


def test_scripts_see_the_warnings_too(file: Path) -> None:
    file.write_text('[worker.typo]\ncommand = ["pyhton3"]\n')
    (warning,) = json.loads(run("check", file, "--json").stdout)["warnings"]
    assert (warning["key"], warning["line"]) == ("worker.typo.command", 2)


def test_what_is_there_is_found_where_the_worker_would(file: Path) -> None:
    program = file.parent / "mine"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    (file.parent / "here.py").write_text("raise RuntimeError('was imported')")
    (file.parent / "there" / "part").mkdir(parents=True)
    (file.parent / "there" / "part" / "deep.py").write_text("raise RuntimeError('was imported')")
    file.write_text(f"""
[defaults]
cwd = "."
[worker.a]
command = ["mine"]
env = {{ PATH = "{file.parent}" }}
[worker.b]
command = ["./mine"]
[worker.c]
python = "here:f"
[worker.d]
python = "part.deep:f"
env = {{ PYTHONPATH = "there" }}
[worker.e]
python = "rekindle.cli.demo_workers:tag"
[worker.f]
python = "math:sin"
[worker.g]
python = "there.part.deep:f"
""")
    assert run("check", file).output == f"{file}: 7 workers, no problems\n"


def test_a_bad_file_exits_with_two_and_a_line_for_each_problem(file: Path) -> None:
    file.write_text(BAD)
    result = run("check", file)
    assert result.exit_code == 2
    assert [line.split(": ")[0] for line in result.stdout.splitlines()] == [f"{file}:3", f"{file}:4"]
    assert result.stderr == f"{file}: 2 problems\n"


def test_a_missing_file_exits_with_two(file: Path) -> None:
    assert run("check", file).exit_code == 2


def test_scripts_get_one_document_about_a_bad_file(file: Path) -> None:
    file.write_text(BAD)
    result = run("check", file, "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 2
    assert result.stderr == ""
    assert document["ok"] is False
    assert document["problems"][0] == {
        "file": str(file),
        "key": "worker.a.count",
        "value": "-1",
        "reason": "must be between 0 and 1000",
        "origin": "",
        "line": 3,
        "column": None,
        "severity": "error",
    }


def test_scripts_get_one_document_about_a_good_file(file: Path) -> None:
    file.write_text(STARTER)
    document = json.loads(run("check", file, "--json").stdout)
    assert {"user", "least_nice", "cgroup_controllers"} <= document.pop("machine").keys()
    ok = {"file": str(file), "ok": True, "workers": 3, "problems": [], "warnings": []}
    assert document == {"schema": 1, **ok}


def test_what_is_shown_is_a_file_that_means_the_same(file: Path) -> None:
    file.write_text(STARTER)
    shown = parse(run("show", file).stdout, file)
    assert shown.specs() == load(file).specs()
    assert as_text(shown) == as_text(load(file))


@pytest.mark.parametrize("preset", ["steady", "service", "patient", "notify", "plugin"])
def test_every_preset_is_shown_in_full(preset: str) -> None:
    config = good(f'[worker.a]\ncommand = ["x"]\npreset = "{preset}"\n[worker.b]\npython = "a:b"\ncount = 0')
    assert good(as_text(config)).specs() == config.specs()


def test_scripts_see_every_worker_with_its_policy(file: Path) -> None:
    file.write_text(STARTER)
    workers: list[dict[str, Any]] = json.loads(run("show", file, "--json").stdout)["workers"]
    assert [worker["id"] for worker in workers] == ["worker:tag:0", "worker:tag:1", "worker:clock:0"]
    assert workers[2]["after"] == ["worker:tag:0", "worker:tag:1"]
    assert workers[2]["restart"]["max_delay_s"] == 30.0


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_secret_is_shown(file: Path, options: tuple[str, ...]) -> None:
    file.write_text(SECRETS)
    result = run("show", file, *options)
    assert result.exit_code == 0
    assert "hunter2" not in result.output
    assert "UTC" in result.output


def test_no_secret_is_shown_in_a_problem(file: Path) -> None:
    file.write_text('[worker.a]\nenv = "x"\ncommand = ["a", "--password", "hunter2", 3]\ndsn = "hunter2"')
    result = run("check", file)
    assert result.exit_code == 2
    assert "hunter2" not in result.output


def test_words_that_are_not_secrets_stay() -> None:
    assert masked_words(["--keep", "a", "--password", "--verbose", "x=1"]) == [
        "--keep",
        "a",
        "--password",
        "--verbose",
        "x=1",
    ]
    assert masked("KEYBOARD", "de") == "de"
    assert masked("SSH_KEY", "k") == "***"


def test_a_bad_file_is_not_shown(file: Path) -> None:
    file.write_text(BAD)
    result = run("show", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "worker.a.surprise = true: is not a known key" in result.stderr


def test_the_first_file_is_printed_or_written_and_passes(file: Path) -> None:
    assert run("init").stdout == STARTER
    assert run("init", file).exit_code == 0
    assert file.read_text() == STARTER
    assert run("check", file).exit_code == 0


def test_a_file_that_is_there_is_never_overwritten(file: Path) -> None:
    file.write_text("mine")
    result = run("init", file)
    assert result.exit_code == 1
    assert "already exists" in result.stderr
    assert file.read_text() == "mine"


def test_the_first_file_cannot_be_written_where_there_is_no_folder(file: Path) -> None:
    assert run("init", file / "x" / "y").exit_code == 1


def test_an_older_file_is_printed_as_toml_that_loads(file: Path) -> None:
    old = file.with_suffix(".json")
    old.write_text('{"plugins": {"dice-roller": {"restart": {"max_attempts": 3}}}}')
    result = run("import", old)
    assert result.exit_code == 0
    assert parse(result.stdout, file).group("dice-roller").template.restart.max_consecutive == 3


def test_an_older_file_that_is_not_understood_prints_nothing_to_redirect(file: Path) -> None:
    old = file.with_suffix(".yaml")
    old.write_text("crash_recovery: []\n")
    result = run("import", old)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "must be a block" in result.stderr


def test_the_schema_is_printed() -> None:
    assert json.loads(run("schema").stdout) == schema()


@pytest.mark.parametrize("command", ["check", "show", "init", "import", "schema"])
def test_help_teaches_with_an_example(command: str) -> None:
    assert "$ rekindle config " + command in run(command, "--help").output


def test_help_loads_neither_actors_nor_database() -> None:
    code = "import sys, rekindle.cli.main; print({'pykka', 'sqlalchemy', 'msgspec'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_the_real_command_refuses_a_bad_file(file: Path) -> None:
    file.write_text(BAD)
    words = [sys.executable, "-c", "from rekindle.cli.main import main; main()", "config", "check", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{file}:3: worker.a.count = -1: must be between 0 and 1000" in done.stdout
