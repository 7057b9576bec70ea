"""Every example in the text of a `--help`: the parser takes it, and where that is harmless it runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.running.conftest import Running

from rekindle.cli.client import ControlClient
from rekindle.cli.main import main

FLEET = """
[http]
listen = "127.0.0.1:0"

[worker.tag]
python = "tests.processes.job_workers:Obedient.main"
jobs = { queues = ["tag", "mail"] }

[worker.web]
command = ["sleep", "1000"]

[worker.migrate]
command = ["true"]
kind = "once"

[worker.backup]
command = ["true"]
every = "1h"

[group.back]
members = ["tag", "web"]
strategy = "one_for_all"

[alerts.sink.pager]
command = ["true"]
"""

SCENARIO = """
name = "mine"

[[worker]]
id = "worker:a:0"
"""

HARMLESS = {
    *("alerts", "audit", "chaos --list", "completion", "config check", "config export"),
    *("config schema", "config show", "dashboard", "db check", "events", "explain", "health", "history"),
    *(
        "jobs stats",
        "jobs toxic",
        "jobs list",
        "jobs export",
        "jobs batches",
        "mcp proposals",
        "output",
        "ps",
    ),
    *("queues", "report", "resources", "runs", "simulate", "status", "timeline"),
}
"""The commands that only read, and end by themselves."""

ENDLESS = {"--follow", "--watch", "--open", "--check", "--state"}
"""Options with which they do not end, open a browser, exit by a verdict, or name another machine's folder."""


REMOTE = "https://rekindle.example.org:8377"
"""The address of examples with --url; when they run, that of the fixture's supervisor stands in."""


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path), command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from commands(found, (*path, name))


def examples() -> list[str]:
    """The command lines of all examples, without the prompt, other programs, redirections and remarks."""
    found: dict[str, None] = {}
    for _, command in commands(main):
        for line in (command.help or "").splitlines():
            example = re.match(r"\s+(?:[\w, ]+:\s+)?(?:\$ )?((?:sudo )?rekindle \w.*)", line)
            prompted = re.match(r"\s+\$ (.*)", line)
            if given := prompted or example:
                found |= dict.fromkeys(rekindle_lines(given[1]))
    return list(found)


def rekindle_lines(line: str) -> list[str]:
    said = re.split(r"\s{2,}|\s#\s", line)[0]
    pieces = re.split(r"""\s(?:\|\||&&|[|&])\s(?=(?:[^'"]|'[^']*'|"[^"]*")*$)""", said)
    found = [re.sub(r"\s>>?\s.*$", "", piece).removeprefix("sudo ") for piece in pieces]
    return [each.replace("/srv/app/", "") for each in found if each.startswith("rekindle ")]


EXAMPLES = examples()


def parsed(arguments: list[str]) -> click.Context:
    """The context of the command that the real parser finds."""
    context = main.make_context("rekindle", list(arguments))
    while isinstance(context.command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest:
            return context
        name, command, rest = context.command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    return context


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a supervisor and the files that examples name."""
    folder = tmp_path_factory.mktemp("examples")
    file = folder / "workers.toml"
    file.write_text(FLEET)
    (folder / "songs.jsonl").write_text('{"path": "song.mp3"}\n')
    (folder / "my.toml").write_text(SCENARIO)
    (folder / "prod.toml").write_text("")
    running = Running(file)
    try:
        os.kill(running.wait_for("worker:tag:0", status="healthy")["pid"], signal.SIGKILL)
        running.wait_for("worker:tag:0", generation=2, status="healthy")
        for role in ("viewer", "operator"):
            shutil.copy(folder / ".rekindle" / f"http-{role}.token", folder / f"{role}.token")
        yield folder
    finally:
        running.stop()


def test_there_are_examples_and_each_command_has_one() -> None:
    said = "\n".join(EXAMPLES)
    without = [path for path, _ in commands(main) if path and f"rekindle {path}" not in said]
    assert without == []
    assert len(EXAMPLES) > 100


@pytest.mark.parametrize("line", EXAMPLES)
def test_the_parser_takes_an_example(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    context = parsed(shlex.split(line)[1:])
    context.close()  # and the files that it opened
    assert (context.command.name or "") in line


def is_harmless(line: str) -> bool:
    named = any(f"{line} ".startswith(f"rekindle {words} ") for words in HARMLESS)
    return named and not ENDLESS & set(shlex.split(line))


@pytest.mark.parametrize("line", [line for line in EXAMPLES if is_harmless(line)])
def test_an_example_that_only_reads_runs(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if REMOTE in line:
        here = ControlClient(folder / ".rekindle" / "control.sock").get("/info")["dashboard"]
        line = line.replace(REMOTE, here)
    result = CliRunner().invoke(main, shlex.split(line)[1:], catch_exceptions=False)
    assert result.exit_code == 0, result.output
