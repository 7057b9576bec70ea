"""Pure: the services of a Compose file, as a Rekindle file. They run on this machine, without containers.

A key without an equivalent becomes a comment; none is dropped silently.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..problems import ConfigError, ConfigProblem
from .imported_worker import ImportedWorker, file_text
from .shell_lines import assignments, command_of, megabytes, seconds

PATIENCE_S = 10
_CONTAINERS = {
    "ports", "expose", "volumes", "networks", "network_mode", "build", "image", "container_name", "hostname",
    "labels", "logging", "platform", "pull_policy", "init", "tty", "stdin_open", "links", "dns",
}  # fmt: skip
"""Keys about the container, which no longer exists."""


def from_compose(text: str, path: Path) -> str:
    """The TOML of a Compose file, which loads without problems.

    Raises:
        ConfigError: the file is not valid, or there is no reader for YAML; with all problems.
    """
    document = _document(text, path)
    services = _services(document, path)
    workers: list[ImportedWorker] = []
    problems: list[ConfigProblem] = []
    for name, service in services.items():
        try:
            workers.append(_worker(str(name), service))
        except (TypeError, ValueError) as error:
            problems.append(ConfigProblem(str(path), str(error), f"services.{name}"))
    if problems:
        raise ConfigError(problems)
    _make_tasks(workers, services)
    defaults = ImportedWorker.plain_defaults()
    defaults.remarks.append(
        "The programs ran in containers: they must be installed here, and share one network."
    )
    defaults.tables["stop"] = {"ask_s": PATIENCE_S}
    others = (str(key) for key in document if not str(key).startswith(("x-", "services", "name", "version")))
    return file_text(path, defaults, workers, others)


def _services(document: Any, path: Path) -> Mapping[Any, Any]:
    services = document.get("services") if isinstance(document, Mapping) else None
    if not isinstance(services, Mapping):
        raise ConfigError([ConfigProblem(str(path), "has no services")])
    return services


def _document(text: str, path: Path) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError([ConfigProblem(str(path), f"is not JSON: {error}")]) from None
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        reason = (
            "is YAML, which needs PyYAML: pip install pyyaml. Or convert it to JSON and import that: "
            "docker compose config --format json > compose.json"
        )
        raise ConfigError([ConfigProblem(str(path), reason)]) from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = f"is not YAML: {getattr(error, 'problem', None) or error}"
        line = None if mark is None else mark.line + 1
        raise ConfigError([ConfigProblem(str(path), reason, line=line)]) from None


def _worker(name: str, service: Any) -> ImportedWorker:
    if not isinstance(service, Mapping):
        raise TypeError("must be a mapping")
    worker = ImportedWorker.called(name)
    worker.settings["command"] = _command(worker, service)
    for key, value in service.items():
        if value is not None and not _take(worker, str(key), value):
            worker.leave_out(str(key), json.dumps(value, default=str))
    if "restart" not in service and "deploy" not in service:
        worker.set("restart", "restart_on", "never")  # as in Compose
    return worker


def _command(worker: ImportedWorker, service: Mapping[str, Any]) -> list[str]:
    words = [*_words(service.get("entrypoint")), *_words(service.get("command"))]
    if words:
        return words
    source = service.get("image") or "its image"
    worker.remarks.append(f"The command is that of {source}: replace this one.")
    return ["echo", f"the command of {worker.name}"]


def _words(value: object) -> list[str]:
    match value:
        case None:
            return []
        case str():
            return command_of(value.replace("$$", "$"))
        case list():
            return [str(each) for each in value]
        case _:
            raise TypeError("command: must be text or a list")


def _take(worker: ImportedWorker, key: str, value: Any) -> bool:
    """Translate a key of Compose; False if it has no equivalent."""
    match key:
        case "command" | "entrypoint":
            pass
        case "environment":
            worker.tables["env"] = _variables(value)
        case "env_file" if isinstance(value, str):
            worker.settings["env_file"] = value
        case "env_file" if isinstance(value, list) and all(isinstance(each, str) for each in value):
            worker.settings["env_file"] = value
        case "working_dir":
            worker.settings["cwd"] = str(value)
        case "user" if ":" not in str(value):
            worker.settings["user"] = str(value)
        case "restart":
            _take_restart(worker, str(value))
        case "depends_on":
            _take_order(worker, value)
        case "scale":
            worker.settings["count"] = int(str(value))
        case "deploy" if isinstance(value, Mapping):
            return _take_deploy(worker, value)
        case "stop_signal":
            worker.set("stop", "signal", str(value))
        case "stop_grace_period":
            worker.set("stop", "ask_s", seconds(key, str(value)))
        case "mem_limit":
            worker.set("limits", "kill_memory_mb", megabytes(key, value))
        case "healthcheck" if isinstance(value, Mapping):
            return _take_healthcheck(worker, value)
        case _ if key in _CONTAINERS:
            worker.leave_out(key, json.dumps(value, default=str))
        case _:
            return False
    return True


def _variables(value: Any) -> dict[str, object]:
    if isinstance(value, Mapping):
        return {str(name): "" if each is None else str(each) for name, each in value.items()}
    if isinstance(value, list):
        given = [str(each) for each in value if "=" in str(each)]
        return assignments("environment", given)
    raise TypeError("environment: must be a mapping or a list")


def _take_restart(worker: ImportedWorker, word: str) -> None:
    policy, _, most = word.partition(":")
    match policy:
        case "no":
            worker.set("restart", "restart_on", "never")
        case "always" | "unless-stopped":
            worker.set("restart", "restart_on", "always")
        case "on-failure":
            worker.set("restart", "restart_on", "on_failure")
            if most:
                worker.set("restart", "max_consecutive", int(most))
        case _:
            raise ValueError(f"restart = {word}: must be no, always, on-failure or unless-stopped")


def _take_order(worker: ImportedWorker, value: Any) -> None:
    if not isinstance(value, Mapping | list):
        raise TypeError("depends_on: must be a list or a mapping")
    worker.settings["after"] = [ImportedWorker.called(str(each)).name for each in value]


def _take_deploy(worker: ImportedWorker, deploy: Mapping[str, Any]) -> bool:
    """Replicas and memory; the rest is about a swarm."""
    if "replicas" in deploy:
        worker.settings["count"] = int(deploy["replicas"])
    memory = deploy.get("resources", {}).get("limits", {}).get("memory")
    if memory is not None:
        worker.set("limits", "kill_memory_mb", megabytes("deploy.resources.limits.memory", memory))
    for key in deploy:
        if key not in ("replicas", "resources"):
            worker.leave_out(f"deploy.{key}", json.dumps(deploy[key], default=str))
    return True


def _take_healthcheck(worker: ImportedWorker, check: Mapping[str, Any]) -> bool:
    """The test of a service, as the condition of its readiness."""
    test = check.get("test")
    if test == ["NONE"] or check.get("disable"):
        return True
    match test:
        case str():
            command = ["sh", "-c", test]
        case ["CMD", *words]:
            command = [str(word) for word in words]
        case ["CMD-SHELL", line]:
            command = ["sh", "-c", str(line)]
        case _:
            return False
    worker.set("ready", "command", command)
    for key in ("interval", "retries", "start_period", "start_interval"):
        if key in check:
            worker.leave_out(f"healthcheck.{key}", check[key])
    if "timeout" in check:
        worker.set("ready", "timeout_s", seconds("healthcheck.timeout", str(check["timeout"])))
    return True


def _make_tasks(workers: list[ImportedWorker], services: Mapping[Any, Any]) -> None:
    """Turn services that others wait for to the end into tasks."""
    waits = [service["depends_on"] for service in services.values() if "depends_on" in service]
    tasks = {
        ImportedWorker.called(str(name)).name
        for wait in waits
        if isinstance(wait, Mapping)
        for name, said in wait.items()
        if isinstance(said, Mapping) and said.get("condition") == "service_completed_successfully"
    }
    for worker in workers:
        if worker.name in tasks:
            worker.settings["kind"] = "once"
