"""Pure: the programs of a supervisord file, as a Rekindle file.

What has no equivalent is said in a comment, never dropped in silence; what is the same in both
by nature is not spoken of.
"""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

from .brought_over import BroughtOver, file_text
from .problems import ConfigError, ConfigProblem

PROGRAM = "program:"
OF_THE_SUPERVISOR = ("supervisord", "supervisorctl", "unix_http_server", "inet_http_server", "rpcinterface:")
"""Sections about supervisord itself, which Rekindle has no use for."""

OUTPUT = re.compile(r"(stdout|stderr)_\w+|redirect_stderr")
SAME_ANYWAY = {"stopasgroup", "killasgroup", "process_name", "startsecs"}
"""Groups are always ended, ids are always numbered, and a worker that runs is watched from the start."""

TRUE, FALSE = {"true", "on", "yes", "1"}, {"false", "off", "no", "0"}
_EXPANSION = re.compile(r"%\((\w+)\)[0-9]*[sd]")
_VARIABLE = re.compile(r"\s*(\w+)\s*=\s*(\"[^\"]*\"|'[^']*'|[^,]*?)\s*(?:,|$)")


def from_supervisord(text: str, path: Path) -> str:
    """The TOML of a supervisord file; it loads.

    Raises:
        ConfigError: the file is not understood, or says what cannot be.
    """
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"), strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        reason = f"is no file of supervisord's: {error.message.splitlines()[0]}"
        raise ConfigError([ConfigProblem(str(path), reason)]) from None
    programs, left_out, problems = [], [], []
    for section in parser.sections():
        if section.startswith(PROGRAM):
            try:
                programs.append(_program(section.removeprefix(PROGRAM), dict(parser[section]), path))
            except ValueError as error:
                problems.append(ConfigProblem(str(path), str(error), f"[{section}]"))
        elif not section.startswith(OF_THE_SUPERVISOR):
            left_out.append(f"[{section}]")
    if problems:
        raise ConfigError(problems)
    return file_text(path, programs, left_out)


def _program(name: str, said: dict[str, str], path: Path) -> BroughtOver:
    worker = BroughtOver.called(name)
    known = {"program_name": name, "group_name": name, "here": str(path.absolute().parent)}
    said = {key: _expanded(value, known) for key, value in said.items()}
    if not said.get("command"):
        raise ValueError("has no command")
    worker.settings["command"] = _words(said.pop("command"))
    for key, value in {"autorestart": "unexpected", **said}.items():
        if not _take(worker, key, value.strip()):
            worker.leave_out(key, value)
    if any(OUTPUT.fullmatch(key) for key in said):
        worker.tell_of_output()
    for unknown in dict.fromkeys(_EXPANSION.findall(" ".join(map(str, _values(worker))))):
        worker.remarks.append(f"Put the value of %({unknown}) in its place.")
    return worker


def _take(worker: BroughtOver, key: str, value: str) -> bool:
    """Set what a key of supervisord's stands for; False: there is nothing like it."""
    match key:
        case "directory":
            worker.settings["cwd"] = value
        case "user":
            worker.settings["user"] = value
        case "numprocs":
            worker.settings["count"] = _whole(key, value)
        case "environment":
            worker.tables["env"] = dict(_variables(value))
        case "autorestart":
            _restart(worker, value.lower())
        case "startretries" if _whole(key, value) > 0:
            worker.set("restart", "max_consecutive", _whole(key, value))
        case "stopsignal":
            worker.set("stop", "signal", "SIG" + value.upper().removeprefix("SIG"))
        case "stopwaitsecs":
            worker.set("stop", "ask_s", _whole(key, value))
        case "exitcodes":
            return value == "0"
        case "autostart":
            return value.lower() in TRUE
        case _:
            return key in SAME_ANYWAY or OUTPUT.fullmatch(key) is not None
    return True


def _restart(worker: BroughtOver, value: str) -> None:
    if value in FALSE:
        worker.set("restart", "enabled", False)
    elif value in TRUE:
        worker.set("restart", "restart_on", "always")
    elif value == "unexpected":
        worker.set("restart", "restart_on", "on_failure")
    else:
        raise ValueError(f"autorestart = {value}: is neither true, false nor unexpected")


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ValueError(f"command: {error}") from None


def _whole(key: str, value: str) -> int:
    if not value.isascii() or not value.isdecimal():
        raise ValueError(f"{key} = {value}: is no whole number")
    return int(value)


def _variables(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(text):
        pair = _VARIABLE.match(text, at)
        if pair is None or pair.end() == at:
            raise ValueError(f"environment = {text}: is not understood at {text[at : at + 20]!r}")
        found.append((pair[1], pair[2].strip("\"'")))
        at = pair.end()
    return found


def _expanded(value: str, known: dict[str, str]) -> str:
    """The value with the expressions in it that are known; the others stay as they are."""
    expanded = _EXPANSION.sub(lambda found: known.get(found[1], found[0]), value)
    return expanded.replace("%%", "%")


def _values(worker: BroughtOver) -> list[object]:
    further = [value for table in worker.tables.values() for value in table.values()]
    return [*worker.settings.values(), *further]
