"""Pure: the programs of a supervisord file, as a Rekindle file.

What has no equivalent is said in a comment, never dropped in silence; what is the same in both
by nature is not spoken of. What holds for every program becomes the defaults.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..file_tables import MOST_MEMBERS
from ..problems import ConfigError, ConfigProblem
from .imported_worker import BroughtOver, file_text
from .supervisord_values import FALSE, TRUE, Expressions, variables, whole, words

Section = Mapping[str, str]

SUPERVISORD, PROGRAM, GROUP = "supervisord", "program:", "group:"
OF_THE_SUPERVISOR = (SUPERVISORD, "supervisorctl", "unix_http_server", "inet_http_server", "rpcinterface:")
"""Sections about supervisord itself, which Rekindle has no use for."""

HANDED_ON = ("directory", "umask")
"""What supervisord sets for itself, and its programs get from it."""

OUTPUT = re.compile(r"(stdout|stderr)_\w+|redirect_stderr")
SAME_ANYWAY = {"stopasgroup", "killasgroup", "process_name"}
"""Groups are always ended, and ids are always numbered."""


def from_supervisord(text: str, path: Path) -> str:
    """The TOML of a supervisord file; it loads.

    Raises:
        ConfigError: the file is not understood, or says what cannot be.
    """
    sections = _sections(text, path)
    groups = _groups(sections)
    defaults = BroughtOver.defaults(SUPERVISORD, restart_on="on_failure", short_runs=3)
    expressions = Expressions({"here": str(path.absolute().parent)})
    programs: list[BroughtOver] = []
    problems: list[ConfigProblem] = []
    with _told(SUPERVISORD, path, problems):
        _take_defaults(defaults, sections.get(SUPERVISORD, {}), expressions)
    # What is set for all of them may be used in each of them.
    everywhere = expressions.with_variables(defaults.tables.get("env", {})).known
    for section, said in sections.items():
        if section.startswith(PROGRAM):
            name = section.removeprefix(PROGRAM).strip()
            known = {**everywhere, "program_name": name, "group_name": groups.get(name, name)}
            with _told(section, path, problems):
                programs += _programs(name, said, known)
    if problems:
        raise ConfigError(problems)
    return file_text(path, defaults, programs, _left_out(sections, set(groups.values())))


@contextmanager
def _told(section: str, path: Path, problems: list[ConfigProblem]) -> Iterator[None]:
    """What is wrong in a section joins the problems."""
    try:
        yield
    except ValueError as error:
        problems.append(ConfigProblem(str(path), str(error), f"[{section}]"))


def _sections(text: str, path: Path) -> dict[str, Section]:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"), strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        reason = f"is no file of supervisord's: {error.message.splitlines()[0]}"
        raise ConfigError([ConfigProblem(str(path), reason)]) from None
    return {section: dict(parser[section]) for section in parser.sections()}


def _groups(sections: Mapping[str, Section]) -> dict[str, str]:
    """The group of each program of this file that is in one."""
    groups: dict[str, str] = {}
    for section, said in sections.items():
        if section.startswith(GROUP):
            for program in (name.strip() for name in said.get("programs", "").split(",")):
                if PROGRAM + program in sections:
                    groups.setdefault(program, section.removeprefix(GROUP).strip())
    return groups


def _left_out(sections: Mapping[str, Section], groups: set[str]) -> Iterator[str]:
    """The sections, and the keys beside programs, that nothing here stands for."""
    for section, said in sections.items():
        if section == SUPERVISORD:
            yield from (f"[{section}] {key} = {said[key]}" for key in HANDED_ON if key in said)
        elif section.startswith(GROUP) and section.removeprefix(GROUP).strip() in groups:
            yield from (f"[{section}] {key} = {said[key]}" for key in said if key != "programs")
        elif not section.startswith((PROGRAM, *OF_THE_SUPERVISOR)):
            yield f"[{section}]"


def _take_defaults(defaults: BroughtOver, said: Section, expressions: Expressions) -> None:
    if "user" in said:
        defaults.settings["user"] = expressions.expanded("user", said["user"])
    if "environment" in said:
        defaults.tables["env"] = variables(expressions.expanded("environment", said["environment"]))
    _tell_of_unknown(defaults, expressions)


def _programs(name: str, said: Section, known: Mapping[str, object]) -> list[BroughtOver]:
    """One worker for all processes of a program; one for each if their numbers tell them apart."""
    many, first = _number("numprocs", said, known, "1"), _number("numprocs_start", said, known, "0")
    known = {**known, "numprocs": many}
    if _is_numbered(said) and 1 < many <= MOST_MEMBERS:
        return _numbered(name, said, known, range(first, first + many))
    return [_program(BroughtOver.called(name), said, {**known, "process_num": first}, many)]


def _number(key: str, said: Section, known: Mapping[str, object], otherwise: str) -> int:
    return whole(key, Expressions(known).expanded(key, said.get(key, otherwise)))


def _numbered(
    name: str, said: Section, known: Mapping[str, object], numbers: Iterable[int]
) -> list[BroughtOver]:
    """A worker for each number; what is to be said about all of them is said about the first."""
    workers: list[BroughtOver] = []
    for number in numbers:
        worker = BroughtOver(BroughtOver.called(f"{name}-{number}").at)
        workers.append(_program(worker, said, {**known, "process_num": number}))
        further = worker.remarks if len(workers) == 1 else []
        worker.remarks = [f"Was number {number} of {name}.", *further]
    return workers


def _is_numbered(said: Section) -> bool:
    return any("%(process_num)" in value for key, value in said.items() if not _is_same_anyway(key))


def _is_same_anyway(key: str) -> bool:
    return key in SAME_ANYWAY or OUTPUT.fullmatch(key) is not None


def _program(worker: BroughtOver, said: Section, known: Mapping[str, object], count: int = 1) -> BroughtOver:
    """The worker, with what its section says."""
    if known["group_name"] != known["program_name"]:
        worker.remarks.append(f"Was in the group {known['group_name']}.")
    if not said.get("command"):
        raise ValueError("has no command")
    expressions = Expressions(known)
    if "environment" in said:
        worker.tables["env"] = variables(expressions.expanded("environment", said["environment"]))
        expressions = expressions.with_variables(worker.tables["env"])
    worker.settings["command"] = words(expressions.expanded("command", said["command"]))
    if count != 1:
        worker.settings["count"] = count
    # Whether it is restarted decides what the other keys come to.
    for key in sorted(said, key=lambda key: key != "autorestart"):
        value = said[key] if _is_same_anyway(key) else expressions.expanded(key, said[key])
        if not _take(worker, key, value.strip()):
            worker.leave_out(key, value)
    if any(OUTPUT.fullmatch(key) for key in said):
        worker.tell_of_output()
    _tell_of_unknown(worker, expressions)
    return worker


def _tell_of_unknown(part: BroughtOver, expressions: Expressions) -> None:
    part.remarks += (f"Put the value of %({name}) in its place." for name in expressions.unknown)


def _take(worker: BroughtOver, key: str, value: str) -> bool:
    """Set what a key of supervisord's stands for; False: there is nothing like it."""
    match key:
        case "command" | "numprocs" | "numprocs_start" | "environment":
            pass  # these were taken before
        case "directory":
            worker.settings["cwd"] = value
        case "user":
            worker.settings["user"] = value
        case "autorestart":
            worker.set("restart", "restart_on", _restart_on(value.lower()))
        case "startretries" | "startsecs" if worker.never_restarted:
            return False
        case "startretries":
            _set_retries(worker, whole(key, value))
        case "startsecs":
            worker.set("restart", "reset_after_healthy_s", whole(key, value))
        case "stopsignal":
            signal = "SIG" + value.upper().removeprefix("SIG")
            worker.set("stop", "signal", int(value) if value.isdecimal() else signal)
        case "stopwaitsecs":
            worker.set("stop", "ask_s", whole(key, value))
        case "exitcodes":
            return value == "0"
        case "autostart" if value.lower() in FALSE:
            worker.wait_for_an_order()
        case "autostart":
            return value.lower() in TRUE
        case _:
            return _is_same_anyway(key)
    return True


def _set_retries(worker: BroughtOver, retries: int) -> None:
    worker.set("restart", "max_consecutive", max(1, retries))
    if not retries:
        worker.remarks.append("startretries = 0: here it is tried once more.")


def _restart_on(value: str) -> str:
    if value in FALSE:
        return "never"
    if value in TRUE:
        return "always"
    if value != "unexpected":
        raise ValueError(f"autorestart = {value}: is neither true, false nor unexpected")
    return "on_failure"
