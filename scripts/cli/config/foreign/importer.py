"""Pure: converts the file of another supervisor into a Rekindle file; two older formats (CF-06) here.

JSON: `{"plugins": {NAME: {"restart": {...}}}}`, or one `{"restart": {...}}` alone. YAML: a
`crash_recovery` block. Both become settings over the preset that was derived from them.
A setting without an equivalent becomes a comment; none is dropped silently. Files of other
supervisors have modules of their own.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never

from rekindle.actors.spec.validation import nearest, setting

from ...render.text import printable
from ..decoding import decoded
from ..loader import parse
from ..problems import (
    ConfigError,
    ConfigFinding,
    ConfigProblem,
    KeyPath,
    dotted,
    shown,
)
from ..toml.toml_text import table_text
from .circus import from_circus
from .compose import from_compose
from .pm2 import from_pm2
from .procfile import from_procfile
from .supervisord import from_supervisord
from .systemd_unit import from_systemd
from .yaml_block import YamlError, block


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRestart:
    """The `restart` block of a plugin."""

    enabled: bool = setting()
    max_attempts: int = setting()
    initial_delay: float = setting()
    max_delay: float = setting()
    backoff_multiplier: float = setting()
    reset_window: float = setting()


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashRecovery:
    """The `crash_recovery` block."""

    auto_restart_enabled: bool = setting()
    max_crashes_in_window: int = setting()
    crash_window_secs: float = setting()
    clear_assignees_enabled: bool = setting()
    show_notifications: bool = setting()


FROM_PLUGIN = {
    "enabled": "enabled",
    "max_attempts": "max_consecutive",
    "initial_delay": "initial_delay_s",
    "max_delay": "max_delay_s",
    "backoff_multiplier": "multiplier",
    "reset_window": "reset_after_healthy_s",
}
FROM_CRASH_RECOVERY = {
    "auto_restart_enabled": "enabled",
    "max_crashes_in_window": "max_in_window",
    "crash_window_secs": "window_s",
}


KNOWN_FILES = (
    "known are files of supervisord and circus (.conf, .ini), of PM2 (JSON), Procfiles, Compose files, "
    "systemd units, JSON with `restart` blocks, and YAML with `crash_recovery`"
)
_OF_COMPOSE = re.compile(r'(?s)(?!.*"(?:apps|plugins|restart)"\s*:\s*[\[{]).*"services"\s*:\s*\{')
_PROCFILE = re.compile(r"(?:\s*(?:#.*)?\n|[A-Za-z0-9_-]+:[ \t]*\S.*\n?)+")
_SECTION = re.compile(r"^\[(program:|supervisord\])", re.MULTILINE)
_CIRCUS = re.compile(r"^\[(watcher:|circus\])", re.MULTILINE)
_UNIT = re.compile(r"^\[(Unit|Service|Install)\]", re.MULTILINE)
_COMPOSE = re.compile(r"^services:", re.MULTILINE)


def imported(text: str, path: Path) -> str:
    """The TOML of an older file, which loads without problems.

    Raises:
        ConfigError: the file is not valid; with all its problems.
    """
    if path.suffix in (".js", ".cjs", ".mjs"):
        raise ConfigError([ConfigProblem(str(path), _is_a_program(path))])
    if path.suffix == ".toml":
        raise ConfigError([ConfigProblem(str(path), f"is a TOML file; {KNOWN_FILES}")])
    read = _reader_of(text, path)
    if read is not None:
        return read(text, path)
    is_yaml = path.suffix in (".yaml", ".yml")
    if path.suffix == ".json" or (not is_yaml and text.lstrip()[:1] == "{"):
        return _from_json(text, path)
    return _from_yaml(text, path)


def _reader_of(text: str, path: Path) -> Callable[[str, Path], str] | None:
    """The reader of the files of another supervisor; None: it is one of the older formats, or PM2's."""
    is_yaml, is_json = path.suffix in (".yaml", ".yml"), text.lstrip()[:1] == "{"
    is_plain = not path.suffix and not is_json and _PROCFILE.fullmatch(text) is not None
    if path.name.startswith("Procfile") or path.suffix == ".procfile" or is_plain:
        return from_procfile
    if path.suffix == ".service" or (not is_yaml and not is_json and _UNIT.search(text)):
        return from_systemd
    if not is_yaml and not is_json and _CIRCUS.search(text):
        return from_circus
    if (is_yaml and _COMPOSE.search(text)) or (is_json and _OF_COMPOSE.search(text)):
        return from_compose
    if path.suffix in (".ini", ".conf") or (not is_yaml and not is_json and _SECTION.search(text)):
        return from_supervisord
    return None


def _is_a_program(path: Path) -> str:
    """Why such a file is refused, and how to convert it to JSON with node."""
    name = json.dumps(str(path) if path.is_absolute() else f"./{path}")
    if path.suffix == ".mjs":
        script = f"import file from {name}; console.log(JSON.stringify(file))"
        node = f"node --input-type=module -e {shlex.quote(script)}"
    else:
        node = f"node -p {shlex.quote(f'JSON.stringify(require({name}))')}"
    return f"is a program; convert it to JSON and import that: {node} > ecosystem.json"


def _from_json(text: str, path: Path) -> str:
    document = _json(text, path)
    if "apps" in document:
        return from_pm2(document, path)
    blocks, left_out = _restart_blocks(document, path)
    problems: list[ConfigProblem] = []
    parts = [_heading(path, left_out)]
    for name, (where, table) in blocks.items():
        restart, findings = decoded(_mapping(table, where, path), PluginRestart, _unknown)
        changes = {FROM_PLUGIN[key]: value for key, value in restart.items()}
        worker = {"preset": "plugin", "command": ["echo", f"the command of {name}"]}
        written = "# The old file has no command: replace this one.\n"
        written += table_text(("worker", name), worker)
        written += "\n" + table_text(("worker", name, "restart"), changes)
        problems += (_problem(path, where, finding) for finding in findings)
        problems += _refused(written, path, where, FROM_PLUGIN)
        parts.append(written)
    if problems:
        raise ConfigError(problems)
    return "\n".join(parts)


def _from_yaml(text: str, path: Path) -> str:
    try:
        table, others = block(text, "crash_recovery")
    except YamlError as error:
        raise ConfigError([ConfigProblem(str(path), error.reason, line=error.line)]) from None
    recovery, findings = decoded(table, CrashRecovery, _unknown)
    changes = {
        FROM_CRASH_RECOVERY[key]: value for key, value in recovery.items() if key in FROM_CRASH_RECOVERY
    }
    crashes = recovery.get("max_crashes_in_window", 0)
    if crashes == 1:
        del changes["max_in_window"]
        changes["enabled"] = False  # the first crash is the last
    elif crashes > 1:
        changes["max_in_window"] = crashes - 1  # the last of these crashes is not followed by a restart
    written = table_text(("defaults",), {"preset": "notify"})
    written += "\n" + table_text(("defaults", "restart"), changes)
    if "clear_assignees_enabled" in recovery:
        release = {"recipe": "br", "enabled": recovery["clear_assignees_enabled"]}
        written += "\n# The recipe runs in the directory of the worker: set `cwd` of every worker.\n"
        written += table_text(("defaults", "release"), release)
    if "show_notifications" in recovery:
        written += "\n" + table_text(("alerts",), {"enabled": recovery["show_notifications"]})
    where = ("crash_recovery",)
    problems = [_problem(path, where, finding) for finding in findings]
    problems += _refused(written, path, where, FROM_CRASH_RECOVERY)
    if problems:
        raise ConfigError(problems)
    example = '\n# The old file has no workers: add yours.\n# [worker.NAME]\n# command = ["program"]\n'
    return "\n".join((_heading(path, others), written)) + example


def _heading(path: Path, left_out: Iterable[str]) -> str:
    lines = [f"# Imported from {path.name}.", *(f"# Left out: {name}." for name in left_out)]
    return "".join(f"{printable(line)}\n" for line in lines)


def _json(text: str, path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ConfigError(
            [ConfigProblem(str(path), f"is not JSON: {error.msg}", line=error.lineno, column=error.colno)]
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError([ConfigProblem(str(path), f"is not JSON: {error}")]) from None
    return _mapping(document, (), path)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("an object contains a key twice")
    return table


def _no_constant(word: str) -> Never:
    raise ValueError(f"{word} is not a number")


def _restart_blocks(
    document: Mapping[str, Any], path: Path
) -> tuple[dict[str, tuple[KeyPath, object]], list[str]]:
    """The blocks by worker name, and the other keys of the file."""
    if "restart" in document:
        left_out = [dotted((key,)) for key in document if key != "restart"]
        return {"imported": (("restart",), document["restart"])}, left_out
    if "plugins" not in document:
        reason = 'has neither "plugins" nor "restart" nor "apps" at its top'
        raise ConfigError([ConfigProblem(str(path), reason)])
    left_out = [dotted((key,)) for key in document if key != "plugins"]
    blocks: dict[str, tuple[KeyPath, object]] = {}
    for name, plugin in _mapping(document["plugins"], ("plugins",), path).items():
        settings = _mapping(plugin, ("plugins", name), path)
        blocks[name] = (("plugins", name, "restart"), settings.get("restart", {}))
        left_out += (dotted(("plugins", name, key)) for key in settings if key != "restart")
    return blocks, left_out


def _mapping(value: object, where: KeyPath, path: Path) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        written = shown(where, value) if where else None
        raise ConfigError([ConfigProblem(str(path), "must be an object", dotted(where), written)])
    return value


def _unknown(path: KeyPath, known: Iterable[str]) -> str:
    names = list(known)
    return f"is not a known key{nearest(path[-1], names) or '; known keys: ' + ', '.join(names)}"


def _problem(path: Path, where: KeyPath, finding: ConfigFinding) -> ConfigProblem:
    key = (*where, *finding.path)
    return ConfigProblem(str(path), finding.reason, dotted(key), shown(key, finding.value))


def _refused(written: str, path: Path, where: KeyPath, names: Mapping[str, str]) -> list[ConfigProblem]:
    """The problems that Rekindle finds in the TOML, under the keys of the old file."""
    try:
        parse(written, path)
    except ConfigError as error:
        old = {new: name for name, new in names.items()}
        return [
            ConfigProblem(
                str(path), problem.reason, _old_key(problem.key, where, old), problem.value, problem.origin
            )
            for problem in error.problems
        ]
    return []


def _old_key(key: str, where: KeyPath, old: Mapping[str, str]) -> str:
    table, _, name = key.rpartition(".restart.")
    return dotted((*where, old[name])) if table and name in old else dotted(where)
