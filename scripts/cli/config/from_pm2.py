"""Pure: the apps of a PM2 ecosystem file (JSON), as a Rekindle file.

What has no equivalent is said in a comment, never dropped in silence.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .brought_over import BroughtOver, file_text
from .problems import ConfigError, ConfigProblem

INTERPRETERS = {
    ".js": "node", ".cjs": "node", ".mjs": "node", ".py": "python3", ".sh": "bash", ".rb": "ruby",
    ".pl": "perl", ".php": "php",
}  # fmt: skip
OUTPUT = {
    "error", "error_file", "err_file", "out_file", "output", "log", "log_file", "log_date_format", "log_type",
    "merge_logs", "combine_logs", "time",
}  # fmt: skip
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]?)B?", re.IGNORECASE)
_MEGABYTES = {"": 1 / 1024**2, "K": 1 / 1024, "M": 1, "G": 1024}
_TIME = re.compile(r"(\d+)\s*(ms|s|m|h)?")
_SECONDS = {None: 0.001, "ms": 0.001, "s": 1, "m": 60, "h": 3600}


def from_pm2(document: Mapping[str, Any], path: Path) -> str:
    """The TOML of an ecosystem file; it loads.

    Raises:
        ConfigError: it says what cannot be, or nothing to run.
    """
    apps = document["apps"]
    workers, problems = [], []
    for number, app in enumerate(apps if isinstance(apps, list) else [apps]):
        try:
            workers.append(_app(app))
        except (TypeError, ValueError) as error:
            problems.append(ConfigProblem(str(path), str(error), f"apps[{number}]"))
    if problems:
        raise ConfigError(problems)
    return file_text(path, workers, [key for key in document if key != "apps"])


def _app(app: object) -> BroughtOver:
    if not isinstance(app, Mapping):
        raise TypeError("must be an object")
    script = app.get("script")
    if not isinstance(script, str) or not script:
        raise ValueError("has no script")
    name = str(app.get("name") or Path(script).stem)
    worker = BroughtOver.called(name)
    worker.settings["command"] = _command(script, app)
    for key, value in {"autorestart": True, **app}.items():
        if not _take(worker, key, value):
            worker.leave_out(key, value)
    if OUTPUT & set(app):
        worker.tell_of_output()
    return worker


def _command(script: str, app: Mapping[str, Any]) -> list[str]:
    interpreter = app.get("interpreter") or app.get("exec_interpreter")
    if interpreter is None:
        interpreter = INTERPRETERS.get(Path(script).suffix, "none")
    options = _words(app.get("interpreter_args") or app.get("node_args") or [])
    before = [] if interpreter == "none" else [str(interpreter), *options]
    # A program without an interpreter is looked up, unless a folder is named.
    return [*before, script, *_words(app.get("args") or [])]


def _take(worker: BroughtOver, key: str, value: Any) -> bool:
    """Set what a key of PM2's stands for; False: there is nothing like it."""
    match key:
        case (
            "name" | "script" | "args" | "interpreter" | "exec_interpreter" | "interpreter_args" | "node_args"
        ):
            pass
        case "cwd":
            worker.settings["cwd"] = str(value)
        case "instances" if isinstance(value, int) and value > 0:
            worker.settings["count"] = value
        case "env" if isinstance(value, Mapping):
            worker.tables["env"] = {str(name): str(each) for name, each in value.items()}
        case "autorestart" if value is False:
            worker.set("restart", "enabled", False)
        case "autorestart":
            worker.set("restart", "restart_on", "always")
        case "max_restarts" if isinstance(value, int) and value > 0:
            worker.set("restart", "max_consecutive", value)
        case "min_uptime":
            worker.set("restart", "reset_after_healthy_s", _seconds(key, value))
        case "restart_delay":
            worker.set("restart", "initial_delay_s", _seconds(key, value))
            worker.set("restart", "max_delay_s", _seconds(key, value))
        case "exp_backoff_restart_delay":
            worker.set("restart", "initial_delay_s", _seconds(key, value))
            worker.set("restart", "max_delay_s", 15)
        case "stop_exit_codes":
            codes = value if isinstance(value, list) else [value]
            worker.set("restart", "give_up_exit_codes", codes)
        case "max_memory_restart":
            worker.set("recycle", "above_memory_mb", _megabytes(value))
        case "kill_timeout":
            worker.set("stop", "ask_s", _seconds(key, value))
        case "exec_mode":
            return value in ("fork", "fork_mode")
        case "watch":
            return value is False
        case _:
            return key in OUTPUT
    return True


def _words(given: object) -> list[str]:
    return [str(word) for word in given] if isinstance(given, list) else shlex.split(str(given))


def _seconds(key: str, value: object) -> float:
    found = _TIME.fullmatch(str(value))
    if found is None or isinstance(value, bool):
        raise ValueError(f"{key} = {value}: is no time")
    seconds = int(found[1]) * _SECONDS[found[2]]
    return int(seconds) if seconds == int(seconds) else seconds


def _megabytes(value: object) -> float:
    found = _SIZE.fullmatch(str(value))
    if found is None:
        raise ValueError(f"max_memory_restart = {value}: is no size")
    return round(float(found[1]) * _MEGABYTES[found[2].upper()], 3)
