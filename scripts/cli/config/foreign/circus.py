"""Pure: the watchers of a circus file, as a Rekindle file.

A key without an equivalent becomes a comment; none is dropped silently.
"""

from __future__ import annotations

import configparser
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from ..problems import ConfigError, ConfigProblem
from ..surroundings.foreign_text import number_mark, translated, translated_words, variable_mark
from .imported_worker import ImportedWorker, file_text
from .shell_lines import megabytes, seconds
from .supervisord_values import FALSE, TRUE, whole

Section = Mapping[str, str]

WATCHER, ENV = "watcher:", "env:"
GRACEFUL_S = 30
RETRIES = 5

_NUMBER = re.compile(r"\$\(circus\.wid\)|\(\(circus\.wid\)\)")
_VARIABLE = re.compile(r"\$\(circus\.env\.(\w+)\)|\(\(circus\.env\.(\w+)\)\)")
_SAME_ANYWAY = {"stop_children", "copy_path", "close_child_stdin", "use_sockets", "send_hup"}


def from_circus(text: str, path: Path) -> str:
    """The TOML of a circus file, which loads without problems.

    Raises:
        ConfigError: the file is not valid; with all its problems.
    """
    sections = _sections(text, path)
    defaults = ImportedWorker.defaults("circus", restart_on="always", short_runs=RETRIES)
    defaults.tables["stop"] = {"ask_s": GRACEFUL_S}
    if "env" in sections:
        defaults.tables["env"] = {key: translated(value) for key, value in sections["env"].items()}
    workers: list[ImportedWorker] = []
    problems: list[ConfigProblem] = []
    for section, said in sections.items():
        if section.startswith(WATCHER):
            name = section.removeprefix(WATCHER).strip()
            try:
                workers.append(_worker(name, said, _environment(name, sections)))
            except (ValueError, LookupError) as error:
                problems.append(ConfigProblem(str(path), str(error), f"[{section}]"))
    if problems:
        raise ConfigError(problems)
    known = ("circus", "env", WATCHER, ENV)
    return file_text(
        path, defaults, workers, (f"[{each}]" for each in sections if not each.startswith(known))
    )


def _sections(text: str, path: Path) -> dict[str, Section]:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";",), strict=False)
    parser.optionxform = str  # type: ignore[assignment]  # variables have capital letters
    try:
        parser.read_string(text)
    except configparser.Error as error:
        reason = f"is not a circus file: {error.message.splitlines()[0]}"
        raise ConfigError([ConfigProblem(str(path), reason)]) from None
    return {section: dict(parser[section]) for section in parser.sections()}


def _environment(name: str, sections: Mapping[str, Section]) -> dict[str, object]:
    """The variables of the sections [env:a,b] that name the watcher."""
    found: dict[str, object] = {}
    for section, said in sections.items():
        names = [each.strip() for each in section.removeprefix(ENV).split(",")]
        if section.startswith(ENV) and (name in names or "*" in names):
            found |= {key: translated(_marked(value)) for key, value in said.items()}
    return found


def _worker(name: str, said: Section, env: dict[str, object]) -> ImportedWorker:
    worker = ImportedWorker.called(name)
    if not said.get("cmd"):
        raise ValueError("has no cmd")
    line = f"{said['cmd']} {said.get('args', '')}".strip()
    if said.get("shell", "false").lower() in TRUE:
        worker.settings["command"] = ["sh", "-c", line]
    else:
        worker.settings["command"] = translated_words(shlex.split(_marked(line)))
    if env:
        worker.tables["env"] = env
    # The meaning of the other keys depends on this one.
    for key in sorted(said, key=lambda key: key != "respawn"):
        if not _take(worker, key, said[key].strip()):
            worker.leave_out(key, said[key])
    _take_output(worker, said)
    if "circus." in re.sub(_NUMBER, "", re.sub(_VARIABLE, "", line)):
        worker.remarks.append(
            "Replace what circus would put in place of $(circus. …): a socket is not handed down."
        )
    return worker


def _marked(text: str) -> str:
    """The text with the number of a process, which begins with 1, and variables in our forms."""
    text = _NUMBER.sub(number_mark(1), text)
    return _VARIABLE.sub(lambda found: variable_mark(found[1] or found[2]), text)


def _take(worker: ImportedWorker, key: str, value: str) -> bool:
    """Translate a key of circus; False if it has no equivalent."""
    match key:
        case "cmd" | "args" | "shell":
            pass
        case "numprocesses":
            worker.settings["count"] = whole(key, value)
        case "working_dir":
            worker.settings["cwd"] = translated(value)
        case "uid":
            worker.settings["user"] = value
        case "respawn":
            worker.set("restart", "restart_on", "never" if value.lower() in FALSE else "always")
        case "max_retry" if value == "-1" and not worker.never_restarted:
            worker.set("restart", "max_consecutive", None)
        case "max_retry" if not worker.never_restarted:
            worker.set("restart", "max_consecutive", max(1, whole(key, value)))
        case "graceful_timeout":
            worker.set("stop", "ask_s", seconds(key, value))
        case "stop_signal":
            signal = "SIG" + value.upper().removeprefix("SIG")
            worker.set("stop", "signal", int(value) if value.isdecimal() else signal)
        case "max_age":
            if whole(key, value):
                worker.set("recycle", "after_s", whole(key, value))
        case "copy_env" if value.lower() in TRUE:
            worker.settings["inherit_env"] = ["*"]
        case "autostart" if value.lower() in FALSE:
            worker.wait_for_an_order()
        case "autostart" | "singleton" | "copy_env":
            pass
        case _:
            return key in _SAME_ANYWAY or key.startswith(("stdout_stream.", "stderr_stream."))
    return True


def _take_output(worker: ImportedWorker, said: Section) -> None:
    """Its output goes to one file, with both streams."""
    file = said.get("stdout_stream.filename") or said.get("stderr_stream.filename")
    if file is None:
        if any(key.startswith(("stdout_stream.", "stderr_stream.")) for key in said):
            worker.tell_of_output()
        return
    worker.set("log", "file", translated(_marked(file)))
    if size := said.get("stdout_stream.max_bytes"):
        worker.set("log", "max_mb", megabytes("max_bytes", size, 1000))
    if kept := said.get("stdout_stream.backup_count"):
        worker.set("log", "keep", whole("backup_count", kept))
