"""Pure: the programs of a supervisord file, as a Rekindle file.

A key without an equivalent becomes a comment; none is dropped silently. A key for what Rekindle
always does needs no comment. What applies to every program becomes the defaults.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..file_tables import MOST_MEMBERS
from ..problems import ConfigError, ConfigProblem
from ..surroundings.foreign_text import is_marked, translated, translated_words
from .imported_worker import ImportedWorker, file_text
from .shell_lines import megabytes
from .supervisord_values import FALSE, TRUE, Expressions, variables, whole, words

Section = Mapping[str, str]

SUPERVISORD, PROGRAM, GROUP = "supervisord", "program:", "group:"
OF_THE_SUPERVISOR = (SUPERVISORD, "supervisorctl", "unix_http_server", "inet_http_server", "rpcinterface:")
"""Sections about supervisord itself, which Rekindle does not need."""

HANDED_ON = ("directory",)
"""Keys that supervisord sets for itself and that its programs inherit."""

_UMASK = "0?[0-7]{3}"
OUTPUT = re.compile(r"(stdout|stderr)_\w+|redirect_stderr")
LOG_SIZE, LOG_BACKUPS = "50MB", "10"
SAME_ANYWAY = {"stopasgroup", "killasgroup", "process_name"}
"""Rekindle always ends the process group, and always numbers ids."""


def from_supervisord(text: str, path: Path) -> str:
    """The TOML of a supervisord file, which loads without problems.

    Raises:
        ConfigError: the file is not valid.
    """
    sections = _sections(text, path)
    groups = _groups(sections)
    defaults = ImportedWorker.defaults(SUPERVISORD, restart_on="on_failure", short_runs=3)
    expressions = Expressions({"here": str(path.absolute().parent)})
    programs: list[ImportedWorker] = []
    problems: list[ConfigProblem] = []
    with _told(SUPERVISORD, path, problems):
        # Every program may refer to the variables that are set for all programs.
        expressions = _take_defaults(defaults, sections.get(SUPERVISORD, {}), expressions)
    everywhere = expressions.known
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
    """Add an error in a section to the problems."""
    try:
        yield
    except ValueError as error:
        problems.append(ConfigProblem(str(path), str(error), f"[{section}]"))


def _sections(text: str, path: Path) -> dict[str, Section]:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"), strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        reason = f"is not a supervisord file: {error.message.splitlines()[0]}"
        raise ConfigError([ConfigProblem(str(path), reason)]) from None
    return {section: dict(parser[section]) for section in parser.sections()}


def _groups(sections: Mapping[str, Section]) -> dict[str, str]:
    """The group of each program that belongs to one."""
    groups: dict[str, str] = {}
    for section, said in sections.items():
        if section.startswith(GROUP):
            for program in (name.strip() for name in said.get("programs", "").split(",")):
                if PROGRAM + program in sections:
                    groups.setdefault(program, section.removeprefix(GROUP).strip())
    return groups


def _left_out(sections: Mapping[str, Section], groups: set[str]) -> Iterator[str]:
    """The sections, and the keys outside programs, that have no equivalent."""
    for section, said in sections.items():
        if section == SUPERVISORD:
            yield from (f"[{section}] {key} = {said[key]}" for key in HANDED_ON if key in said)
        elif section.startswith(GROUP) and section.removeprefix(GROUP).strip() in groups:
            yield from (f"[{section}] {key} = {said[key]}" for key in said if key != "programs")
        elif not section.startswith((PROGRAM, *OF_THE_SUPERVISOR)):
            yield f"[{section}]"


def _take_defaults(defaults: ImportedWorker, said: Section, expressions: Expressions) -> Expressions:
    if re.fullmatch(_UMASK, said.get("umask", "")):
        defaults.settings["umask"] = said["umask"]
    if "user" in said:
        defaults.settings["user"] = expressions.expanded("user", said["user"])
    if "environment" in said:
        env = variables(expressions.expanded("environment", said["environment"]))
        defaults.tables["env"] = {key: translated(str(value)) for key, value in env.items()}
        expressions = expressions.with_variables(env)
    _tell_of_unknown(defaults, expressions)
    return expressions


def _programs(name: str, said: Section, known: Mapping[str, object]) -> list[ImportedWorker]:
    """One worker for all processes of a program, or one for each if no placeholder expresses its number."""
    many, first = _number("numprocs", said, known, "1"), _number("numprocs_start", said, known, "0")
    known = {**known, "numprocs": many}
    if not _is_numbered(said) or not 1 < many <= MOST_MEMBERS:
        return [
            _program(ImportedWorker.called(name), said, Expressions({**known, "process_num": first}), many)
        ]
    try:
        return [_program(ImportedWorker.called(name), said, Expressions(known, first=first), many)]
    except LookupError:
        return _numbered(name, said, known, range(first, first + many))


def _number(key: str, said: Section, known: Mapping[str, object], otherwise: str) -> int:
    return whole(key, Expressions(known).expanded(key, said.get(key, otherwise)))


def _numbered(
    name: str, said: Section, known: Mapping[str, object], numbers: Iterable[int]
) -> list[ImportedWorker]:
    """A worker for each number; the first one carries the remarks that apply to all."""
    workers: list[ImportedWorker] = []
    for number in numbers:
        worker = ImportedWorker(ImportedWorker.called(f"{name}-{number}").at)
        workers.append(_program(worker, said, Expressions({**known, "process_num": number})))
        further = worker.remarks if len(workers) == 1 else []
        worker.remarks = [f"Was number {number} of {name}.", *further]
    return workers


def _is_numbered(said: Section) -> bool:
    numbered = [key for key, value in said.items() if "%(process_num)" in value]
    return any(not _is_same_anyway(key) for key in numbered) or "%(process_num)" in _log_file(said)


def _log_file(said: Section) -> str:
    """The file of the standard output; empty if there is none with a name of its own."""
    file = said.get("stdout_logfile", "").strip()
    return file if file.startswith("/") and not file.startswith("/dev/") else ""


def _take_output(worker: ImportedWorker, said: Section, expressions: Expressions) -> None:
    """Write to the same file; Rekindle writes both streams to it."""
    file = _log_file(said)
    if not file:
        worker.tell_of_output()
        return
    worker.set("log", "file", translated(expressions.expanded("stdout_logfile", file)))
    size = said.get("stdout_logfile_maxbytes", LOG_SIZE).strip()
    worker.set("log", "max_mb", None if size == "0" else megabytes("stdout_logfile_maxbytes", size, 1000))
    kept = said.get("stdout_logfile_backups", LOG_BACKUPS).strip()
    worker.set("log", "keep", whole("stdout_logfile_backups", kept))
    if "stderr_logfile" in said:
        worker.remarks.append(
            f"The log file has both streams; before: stderr_logfile = {said['stderr_logfile']}"
        )


def _is_same_anyway(key: str) -> bool:
    return key in SAME_ANYWAY or OUTPUT.fullmatch(key) is not None


def _program(
    worker: ImportedWorker, said: Section, expressions: Expressions, count: int = 1
) -> ImportedWorker:
    """The worker, with the settings of its section.

    Raises:
        LookupError: the number of a process is needed where no placeholder is replaced.
    """
    known = expressions.known
    if known["group_name"] != known["program_name"]:
        worker.remarks.append(f"Was in the group {known['group_name']}.")
    if not said.get("command"):
        raise ValueError("has no command")
    if "environment" in said:
        env = variables(expressions.expanded("environment", said["environment"]))
        worker.tables["env"] = {key: translated(str(value)) for key, value in env.items()}
        expressions = expressions.with_variables(env)
    worker.settings["command"] = translated_words(words(expressions.expanded("command", said["command"])))
    if count != 1:
        worker.settings["count"] = count
    # The meaning of the other keys depends on autorestart.
    for key in sorted(said, key=lambda key: key != "autorestart"):
        value = said[key] if _is_same_anyway(key) else expressions.expanded(key, said[key])
        if _is_marked(key, value):
            raise LookupError(f"no placeholder is replaced in {key}")
        if not _take(worker, key, value.strip()):
            worker.leave_out(key, value)
    if any(OUTPUT.fullmatch(key) for key in said):
        _take_output(worker, said, expressions)
    _tell_of_unknown(worker, expressions)
    return worker


def _is_marked(key: str, value: str) -> bool:
    return key not in ("command", "environment", "directory") and is_marked(value)


def _tell_of_unknown(part: ImportedWorker, expressions: Expressions) -> None:
    part.remarks += (f"Replace %({name}) with its value." for name in expressions.unknown)


def _take(worker: ImportedWorker, key: str, value: str) -> bool:
    """Translate a key of supervisord; False if it has no equivalent."""
    match key:
        case "command" | "numprocs" | "numprocs_start" | "environment":
            pass  # translated before
        case "directory":
            worker.settings["cwd"] = translated(value)
        case "umask" if re.fullmatch(_UMASK, value):
            worker.settings["umask"] = value
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
            worker.set(
                "restart", "success_exit_codes", [whole(key, each.strip()) for each in value.split(",")]
            )
        case "umask":
            worker.settings["umask"] = value
        case "autostart" if value.lower() in FALSE:
            worker.wait_for_an_order()
        case "autostart":
            return value.lower() in TRUE
        case _:
            return _is_same_anyway(key)
    return True


def _set_retries(worker: ImportedWorker, retries: int) -> None:
    worker.set("restart", "max_consecutive", max(1, retries))
    if not retries:
        worker.remarks.append("startretries = 0: Rekindle retries at least once.")


def _restart_on(value: str) -> str:
    if value in FALSE:
        return "never"
    if value in TRUE:
        return "always"
    if value != "unexpected":
        raise ValueError(f"autorestart = {value}: must be true, false or unexpected")
    return "on_failure"
