"""Pure: the apps of a PM2 ecosystem file (JSON), as a Rekindle file.

A key without an equivalent becomes a comment; none is dropped silently. What PM2 does with every
app becomes the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..problems import ConfigError, ConfigProblem
from ..surroundings.foreign_text import number_mark, translated, translated_words
from .imported_worker import ImportedWorker, file_text
from .pm2_values import megabytes, seconds, text, whole, words

INTERPRETERS = {
    ".js": "node", ".cjs": "node", ".mjs": "node", ".ts": "bun", ".tsx": "bun", ".coffee": "coffee",
    ".ls": "lsc", ".py": "python3", ".sh": "bash", ".rb": "ruby", ".pl": "perl", ".php": "php",
}  # fmt: skip
OF_CLUSTERS = ("node", "bun")
"""Interpreters of which PM2 can run several as a cluster, which shares one port."""

OUTPUT = {
    "error", "error_file", "err_file", "out_file", "output", "log", "log_file", "log_date_format", "log_type",
    "merge_logs", "combine_logs", "time",
}  # fmt: skip
LOG_FILES = ("log_file", "log", "out_file", "output", "error_file", "error", "err_file")
LOG_REFUSED = re.compile(r"^/dev/|[{}\0]|/$|^none$")
NUMBERED_LOG = re.compile(r"(?:-[0-9]+)?\.log$")
"""The end of a name in which PM2 puts the number of an instance."""
OF_THE_COMMAND = ("args", "interpreter", "exec_interpreter", "interpreter_args", "node_args")
OF_RESTARTS = {
    "max_restarts", "min_uptime", "restart_delay", "exp_backoff_restart_delay", "stop_exit_codes",
}  # fmt: skip

KILL_TIMEOUT_S = 1.6
SHORT_RUNS = 16
LONGEST_BACKOFF_S = 15
BACKOFF_RESET_S = 30


def from_pm2(document: Mapping[str, Any], path: Path) -> str:
    """The TOML of an ecosystem file, which loads without problems.

    Raises:
        ConfigError: the file is not valid, or does not name a program to run.
    """
    apps = document["apps"]
    workers, problems = [], []
    for number, app in enumerate(apps if isinstance(apps, list) else [apps]):
        try:
            workers.append(_app(app))
        except (TypeError, ValueError, RecursionError) as error:
            problems.append(ConfigProblem(str(path), str(error), f"apps[{number}]"))
    if problems:
        raise ConfigError(problems)
    defaults = ImportedWorker.defaults("PM2", restart_on="always", short_runs=SHORT_RUNS)
    defaults.tables["stop"] = {"signal": "SIGINT", "ask_s": KILL_TIMEOUT_S}
    return file_text(path, defaults, workers, [key for key in document if key != "apps"])


def _app(app: object) -> ImportedWorker:
    if not isinstance(app, Mapping):
        raise TypeError("must be an object")
    app = {key: value for key, value in app.items() if value is not None}
    script = app.get("script")
    if not isinstance(script, str) or not script:
        raise ValueError("has no script")
    worker = ImportedWorker.called(str(app.get("name") or Path(script).stem))
    worker.settings["command"] = translated_words(_command(worker, script, app))
    # The meaning of the other keys depends on these two.
    for key in sorted(app, key=lambda key: key not in ("autorestart", "instances")):
        if not _take(worker, key, app[key]):
            worker.leave_out(key, text(app[key]))
    _number_instances(worker, app)
    if app.get("exp_backoff_restart_delay") and not {"max_restarts", "min_uptime"} & set(app):
        _remove_limit(worker)
    if OUTPUT & set(app):
        _take_output(worker, app)
    return worker


def _take_output(worker: ImportedWorker, app: Mapping[str, Any]) -> None:
    """Write to the file of both streams, else to that of the first one; Rekindle writes both to it."""
    files = {key: app[key] for key in LOG_FILES if _is_log_file(app.get(key))}
    if not files:
        worker.tell_of_output()
        return
    key, *others = files
    worker.set("log", "file", _log_file(files[key], app))
    worker.remarks.append("PM2 does not rotate log files; Rekindle does, as set by max_mb and keep.")
    for other in others:
        worker.remarks.append(f"The log file has both streams; before: {other} = {files[other]}")
    if "log_type" in app:
        worker.leave_out("log_type", text(app["log_type"]))


def _is_log_file(value: object) -> bool:
    """Whether it is the name of a file, in which braces do not mean anything."""
    return isinstance(value, str) and bool(value) and value != "NULL" and not LOG_REFUSED.search(value)


def _log_file(file: str, app: Mapping[str, Any]) -> str:
    """The name relative to cwd, as in PM2; without merge_logs each instance has its own file."""
    is_merged = any(text(app.get(key, False)) == "true" for key in ("merge_logs", "combine_logs"))
    if not is_merged and whole(app.get("instances", 1)) not in (None, 0, 1):
        file = NUMBERED_LOG.sub(lambda _: f"-{number_mark()}.log", file)
    is_relative = "cwd" in app and not file.startswith("~")
    return translated(str(Path(text(app["cwd"]), file)) if is_relative else file)


def _command(worker: ImportedWorker, script: str, app: Mapping[str, Any]) -> list[str]:
    """The command that PM2 would run; a remark says where PM2 would examine the file first."""
    if " " in script:
        for key in OF_THE_COMMAND:
            if key in app:
                worker.leave_out(key, text(app[key]))
        return ["bash", "-c", script]
    options = words(app.get("interpreter_args") or app.get("node_args") or [])
    interpreter = _interpreter(script, app) or ("node" if options else None)
    if interpreter is None:
        worker.remarks.append(f"PM2 runs {script} with node, unless it is a binary.")
        worker.remarks.append('Rekindle runs it directly: unless it begins with #!, put "node" before it.')
    elif Path(script).suffix in (".ts", ".tsx") and interpreter == "bun":
        worker.remarks.append("Before version 5.3.1 PM2 ran it with ts-node.")
    _tell_of_cluster(worker, interpreter, app)
    before = [] if interpreter in (None, "none") else [interpreter, *options]
    # A program without an interpreter is looked up in PATH, unless its name contains a folder.
    return [*before, script, *words(app.get("args") or [])]


def _interpreter(script: str, app: Mapping[str, Any]) -> str | None:
    """The interpreter of the script; None: PM2 uses node unless the script is a binary."""
    given = app.get("interpreter") or app.get("exec_interpreter")
    return INTERPRETERS.get(Path(script).suffix) if given is None else text(given)


def _tell_of_cluster(worker: ImportedWorker, interpreter: str | None, app: Mapping[str, Any]) -> None:
    may_be = interpreter is None or Path(interpreter).name.endswith(OF_CLUSTERS)
    mode = text(app.get("exec_mode", "cluster" if may_be else "fork"))
    if mode.startswith("cluster") and whole(app.get("instances", 1)) != 1:
        worker.remarks.append("PM2 runs these as a cluster with one port; in Rekindle each needs its own.")
        env = app.get("env")
        port = whole(env.get("PORT", "")) if isinstance(env, Mapping) else None
        if port is not None and app.get("increment_var") != "PORT":
            worker.remarks.append(f'For a port of its own each: PORT = "{{n+{port}}}".')


def _take(worker: ImportedWorker, key: str, value: Any) -> bool:
    """Translate a key of PM2; False if it has no equivalent."""
    match key:
        case _ if key in ("name", "script", *OF_THE_COMMAND):
            pass
        case _ if key in OF_RESTARTS:
            return not worker.never_restarted and _take_restart(worker, key, value)
        case "cwd":
            worker.settings["cwd"] = translated(text(value))
        case "instances" if whole(value):
            worker.settings["count"] = whole(value)
        case "env" if isinstance(value, Mapping):
            worker.tables["env"] = {name: translated(text(each)) for name, each in value.items()}
        case "autorestart":
            worker.set("restart", "restart_on", "never" if text(value) == "false" else "always")
        case "autostart" if value is False:
            worker.wait_for_an_order()
        case "autostart":
            return value is True
        case "max_memory_restart":
            worker.set("recycle", "above_memory_mb", megabytes(key, value))
        case "kill_timeout":
            worker.set("stop", "ask_s", seconds(key, value) or KILL_TIMEOUT_S)
        case "increment_var" | "instance_var":
            return isinstance(value, str) and bool(value)  # see _number_instances
        case "exec_mode":
            return value in ("fork", "fork_mode")
        case "watch":
            return value is False
        case _:
            return key in OUTPUT
    return True


def _take_restart(worker: ImportedWorker, key: str, value: Any) -> bool:
    """Translate a key about restarts; False if it has no equivalent."""
    match key:
        case "max_restarts" if whole(value):
            worker.set("restart", "max_consecutive", whole(value))
        case "min_uptime":
            worker.set("restart", "reset_after_healthy_s", seconds(key, value))
        case "restart_delay":
            _delay(worker, seconds(key, value), seconds(key, value))
        case "exp_backoff_restart_delay" if seconds(key, value) > 0:
            _delay(worker, seconds(key, value), LONGEST_BACKOFF_S)
            worker.set("restart", "multiplier", 1.5)
        case "stop_exit_codes":
            _stop_at(worker, value if isinstance(value, list) else [value])
        case _:
            return False
    return True


def _number_instances(worker: ImportedWorker, app: Mapping[str, Any]) -> None:
    """The variables by which PM2 tells its instances apart."""
    if (whole(app.get("instances", 1)) or 1) < 2:
        return
    env = worker.tables.setdefault("env", {})
    env[str(app.get("instance_var") or "NODE_APP_INSTANCE")] = translated(number_mark())
    counted = app.get("increment_var")
    if isinstance(counted, str) and (first := whole(env.get(counted, ""))) is not None:
        env[counted] = translated(number_mark(first))


def _delay(worker: ImportedWorker, first_s: float, longest_s: float) -> None:
    worker.set("restart", "initial_delay_s", first_s)
    worker.set("restart", "max_delay_s", longest_s)
    if first_s < 1:
        worker.set("restart", "min_delay_s", first_s)


def _remove_limit(worker: ImportedWorker) -> None:
    """With growing delays, PM2 soon stops counting short runs, so it never gives up."""
    if not worker.never_restarted:
        worker.set("restart", "max_consecutive", None)
        worker.set("restart", "reset_after_healthy_s", BACKOFF_RESET_S)


def _stop_at(worker: ImportedWorker, codes: list[Any]) -> None:
    """Exit code 0 can prevent a restart; any other code is always a failure in Rekindle."""
    others = [code for code in codes if whole(code) != 0]
    if len(others) < len(codes):
        worker.set("restart", "restart_on", "on_failure")
    if others:
        worker.leave_out("stop_exit_codes", text(others))
