"""Pure: every effective setting of a configuration, with where its value comes from; secrets are masked."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from rekindle.actors.spec.presets import PRESETS
from rekindle.actors.views.known_secrets import MASK
from rekindle.actors.views.setting_origin import Origin, SettingOrigin

from .config_text import alerts_table, as_text
from .model import Config
from .problems import KeyPath, dotted
from .toml.toml_text import value_text

_OTHER_KEY: Mapping[KeyPath, KeyPath] = {("restart", "restart_on"): ("temporary",)}
"""Settings that another key of the worker can give."""


def setting_origins(config: Config, scaled: Collection[str] = ()) -> tuple[SettingOrigin, ...]:
    """Every setting, in the order of `config show`.

    Args:
        config: the configuration.
        scaled: the groups whose number of workers an operator has changed.
    """
    shown: dict[str, Any] = tomllib.loads(as_text(config))
    workers = shown.pop("worker", {})
    everything = {**shown, "alerts": alerts_table(config.alerts), "worker": workers}
    presets = {group.name: group.preset for group in config.groups}
    return tuple(_setting(config, path, value, presets, scaled) for path, value in _leaves((), everything))


def origin_text(setting: SettingOrigin) -> str:
    """Where a value comes from, in a few words."""
    match setting.origin:
        case Origin.FILE:
            return "command line" if setting.line is None else f"line {setting.line}"
        case Origin.DEFAULTS:
            return "[defaults]" if setting.line is None else f"line {setting.line}, [defaults]"
        case Origin.PRESET:
            return f"preset {setting.preset}"
        case Origin.SCALE:
            return "rekindle scale, until the next reload"
        case Origin.DEFAULT:
            return "default"


def _leaves(path: KeyPath, table: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Any]]:
    """The settings of a table, then those of the tables in it."""
    nested = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    yield from (((*path, key), value) for key, value in table.items() if key not in nested)
    for key, value in nested.items():
        yield from _leaves((*path, key), value)


def _setting(
    config: Config, path: KeyPath, value: Any, presets: Mapping[str, str], scaled: Collection[str]
) -> SettingOrigin:
    depth = len(path)
    table, key = (path[:2], path[2:]) if depth > 2 else (path[:-1], path[-1:])
    preset = presets[path[1]] if path[0] == "worker" else None
    origin, line = _origin(config, path, preset)
    if path[0] == "worker" and key == ("count",) and path[1] in scaled:
        origin, line = Origin.SCALE, None
    shown = MASK if key[0] == "env" else value
    if config.text is not None:
        line = None
    return SettingOrigin(
        dotted(table),
        dotted(key),
        value_text(shown),
        origin,
        line,
        preset if origin is Origin.PRESET else None,
    )


def _origin(config: Config, path: KeyPath, preset: str | None) -> tuple[Origin, int | None]:
    if preset is None:
        place = _place(config, path)
        return (Origin.DEFAULT, None) if place is None else (Origin.FILE, place.line)
    key = path[2:]
    for name in (key, _OTHER_KEY.get(key, key)):
        for begin, origin in ((path[:2], Origin.FILE), (("defaults",), Origin.DEFAULTS)):
            place = _place(config, (*begin, *name))
            if place is not None:
                return origin, place.line
    is_of_preset = key != ("preset",) and getattr(PRESETS[preset], key[0], None) is not None
    return Origin.PRESET if is_of_preset else Origin.DEFAULT, None


_SHORT_KEYS = {"url", "address", "command"}
"""What a probe may be written as, without a table."""


class _Place(NamedTuple):
    line: int | None


def _place(config: Config, path: KeyPath) -> _Place | None:
    """Where a key is written, also in short: `http = "…"` is the `url` of that table."""
    if path in config.places:
        return _Place(config.places[path])
    is_short = path[:-1] in config.places and path[-1] in _SHORT_KEYS
    return _Place(config.places[path[:-1]]) if is_short else None
