"""Pure: a systemd service unit, as a Rekindle file.

A key without an equivalent becomes a comment; none is dropped silently.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from ..problems import ConfigError, ConfigProblem
from .imported_worker import ImportedWorker, file_text
from .shell_lines import assignments, megabytes, seconds

Unit = Mapping[str, list[str]]
"""The values of each key; a key may be given several times."""

_SECTION = re.compile(r"\[(\w+)\]")
_PREFIX = re.compile(r"[-@:+!]*")
_SPECIFIER = re.compile(r"%[A-Za-z]")

RESTART_S = 0.1
BURST, INTERVAL_S = "5", "10s"
STOP_S = 90

_RESTART_ON = {
    "no": "never", "always": "always", "on-failure": "on_failure", "on-abnormal": "on_failure",
    "on-abort": "on_failure", "on-watchdog": "on_failure",
}  # fmt: skip
_NEEDLESS = {
    "Description", "Documentation", "WantedBy", "RequiredBy", "Alias", "SyslogIdentifier", "StandardOutput",
    "StandardError", "KillMode", "SendSIGKILL", "RemainAfterExit", "NotifyAccess", "DefaultDependencies",
}  # fmt: skip
"""Keys about systemd itself, or for what Rekindle always does."""


def from_systemd(text: str, path: Path) -> str:
    """The TOML of a service unit, which loads without problems.

    Raises:
        ConfigError: the file is not valid; with all its problems.
    """
    unit = _read(text)
    workers: list[ImportedWorker] = []
    problems: list[ConfigProblem] = []
    try:
        workers = _workers(path.stem.removesuffix("@"), unit)
    except ValueError as error:
        problems.append(ConfigProblem(str(path), str(error)))
    if problems:
        raise ConfigError(problems)
    return file_text(path, ImportedWorker.plain_defaults(), workers, ())


def _read(text: str) -> dict[str, list[str]]:
    unit: dict[str, list[str]] = {}
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        line = line.strip()
        if not line or line[0] in "#;" or _SECTION.fullmatch(line):
            continue
        key, sign, value = (part.strip() for part in line.partition("="))
        if sign and not value:
            unit.pop(key, None)  # an empty value resets a list
        elif sign:
            unit.setdefault(key, []).append(value)
    return unit


def _workers(name: str, unit: Unit) -> list[ImportedWorker]:
    worker = ImportedWorker.called(name)
    if "ExecStart" not in unit:
        raise ValueError("has no ExecStart")
    worker.settings["command"] = _command(worker, unit["ExecStart"])
    before = _task_before(worker, unit.get("ExecStartPre", []))
    _take_restart(worker, unit)
    # Whether a start has a time limit depends on the type.
    for key, values in sorted(unit.items(), key=lambda item: item[0] not in ("Type", "WatchdogSec")):
        try:
            taken = _take(worker, key, values)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
        if not taken:
            for value in values:
                worker.leave_out(key, value)
    if any(_SPECIFIER.search(word) for word in _texts(worker)):
        worker.remarks.append(
            "Replace the specifiers such as %i, %h and %n: Rekindle has {n}, {name} and {id}."
        )
    return [*before, worker]


def _command(worker: ImportedWorker, lines: list[str]) -> list[str]:
    """The words of a command; several commands are run one after the other by a shell."""
    stripped = [line[len(_PREFIX.match(line)[0]) :] for line in lines]  # type: ignore[index]
    if len(stripped) > 1:
        return ["sh", "-c", " && ".join(stripped).replace("%%", "%")]
    words = shlex.split(stripped[0].replace("%%", "%"))
    if any(re.fullmatch(r"\$[A-Za-z_]\w*", word) for word in words):
        worker.remarks.append("systemd splits a word such as $ARGS into several: put them into the command.")
    return [re.sub(r"^\$([A-Za-z_]\w*)$", r"${\1}", word) for word in words]


def _task_before(worker: ImportedWorker, lines: list[str]) -> list[ImportedWorker]:
    if not lines:
        return []
    task = ImportedWorker.called(f"{worker.name}-pre")
    task.remarks.append("ExecStartPre: runs once before the first start, not before every one.")
    task.settings["kind"] = "once"
    task.settings["command"] = _command(task, lines)
    worker.settings["after"] = [task.name]
    return [task]


def _take_restart(worker: ImportedWorker, unit: Unit) -> None:
    """How systemd restarts by default, and how often."""
    word = unit.get("Restart", ["no"])[-1]
    if word not in _RESTART_ON:
        worker.leave_out("Restart", word)
        return
    if word.startswith("on-a") or word == "on-watchdog":
        worker.remarks.append(f"Restart = {word}: Rekindle restarts after every failure.")
    is_task = unit.get("Type", [""])[-1] == "oneshot"
    if not (is_task and word == "no"):
        worker.set("restart", "restart_on", _RESTART_ON[word])
    if _RESTART_ON[word] == "never":
        return
    delay_s = seconds("RestartSec", unit.get("RestartSec", [str(RESTART_S)])[-1])
    worker.tables["restart"] |= {
        "initial_delay_s": delay_s, "max_delay_s": delay_s, "min_delay_s": min(1.0, delay_s), "jitter": 0,
    }  # fmt: skip
    interval = _last(unit, "StartLimitIntervalSec", "StartLimitInterval", otherwise=INTERVAL_S)
    burst = int(_last(unit, "StartLimitBurst", otherwise=BURST))
    interval_s = 0.0 if interval == "infinity" else seconds("StartLimitIntervalSec", interval)
    limited = interval_s > 0 and burst > 1
    worker.set("restart", "max_in_window", burst - 1 if limited else None)  # the first start counts there
    if limited:
        worker.set("restart", "window_s", interval_s)


def _last(unit: Unit, *keys: str, otherwise: str) -> str:
    return next((unit[key][-1] for key in keys if key in unit), otherwise)


def _take(worker: ImportedWorker, key: str, values: list[str]) -> bool:
    """Translate a key of systemd; False if it has no equivalent."""
    value = values[-1]
    match key:
        case "ExecStart" | "ExecStartPre" | "Restart" | "RestartSec":
            pass
        case "StartLimitBurst" | "StartLimitIntervalSec" | "StartLimitInterval":
            return not worker.never_restarted
        case "Type":
            return _take_type(worker, value)
        case "User":
            worker.settings["user"] = value
        case "WorkingDirectory":
            worker.settings["cwd"] = value.removeprefix("-")
        case "Environment":
            words = [word for each in values for word in shlex.split(each)]
            worker.tables["env"] = assignments(key, words)
        case "PassEnvironment":
            worker.settings["inherit_env"] = [name for each in values for name in each.split()]
        case "EnvironmentFile":
            worker.settings["env_file"] = [each.removeprefix("-") for each in values]
        case "KillSignal":
            worker.set("stop", "signal", int(value) if value.isdecimal() else value)
        case "TimeoutStopSec" if value != "infinity":
            worker.set("stop", "ask_s", seconds(key, value))
        case "TimeoutStartSec" if value != "infinity" and "ready" in worker.tables:
            worker.set("health", "startup_timeout_s", seconds(key, value))
        case "WatchdogSec":
            worker.set("ready", "notify", True)
            worker.set("ready", "watchdog_s", seconds(key, value))
        case "MemoryMax" | "MemoryLimit" if value != "infinity":
            worker.set("limits", "kill_memory_mb", megabytes(key, value))
        case "SuccessExitStatus" if all(word.isdecimal() for word in value.split()):
            codes = sorted({0, *(int(word) for each in values for word in each.split())})
            worker.set("restart", "success_exit_codes", codes)
        case _:
            return key in _NEEDLESS or _take_surroundings(worker, key, value)
    return True


def _take_surroundings(worker: ImportedWorker, key: str, value: str) -> bool:
    """Translate a key about the process itself; False if it has no equivalent."""
    match key:
        case "UMask":
            worker.settings["umask"] = value
        case "Nice":
            worker.settings["nice"] = int(value)
        case "OOMScoreAdjust":
            worker.settings["oom_score_adj"] = int(value)
        case "SupplementaryGroups":
            worker.settings["groups"] = value.split()
        case "LimitNOFILE" | "LimitNPROC" | "LimitCORE" if value.isdecimal():
            worker.set("rlimits", key.removeprefix("Limit").lower(), int(value))
        case _:
            return False
    return True


def _take_type(worker: ImportedWorker, value: str) -> bool:
    match value:
        case "simple" | "exec" | "idle":
            pass
        case "oneshot":
            worker.settings["kind"] = "once"
        case "notify" | "notify-reload":
            worker.set("ready", "notify", True)
        case "forking":
            worker.remarks.append(
                "Type = forking: the program must stay in the foreground; look for its option."
            )
        case _:
            return False
    return True


def _texts(worker: ImportedWorker) -> list[str]:
    values = [
        *worker.settings.values(),
        *(each for table in worker.tables.values() for each in table.values()),
    ]
    lists = [value if isinstance(value, list) else [value] for value in values]
    return [str(each) for value in lists for each in value]
