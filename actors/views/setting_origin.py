"""Pure: the effective settings of a supervisor, and where the value of each comes from."""

from __future__ import annotations

from enum import Enum

import msgspec


class Origin(Enum):
    """Where the value of a setting comes from."""

    FILE = "file"
    """It is written in the file."""
    DEFAULTS = "defaults"
    """It is written in [defaults]."""
    PRESET = "preset"
    DEFAULT = "default"
    SCALE = "scale"
    """An operator gave it; it is valid until the file is loaded again."""


class SettingOrigin(msgspec.Struct, frozen=True):
    """One effective setting."""

    table: str
    """`worker.web`; empty: the top of the file."""
    key: str
    """`restart.max_in_window`."""
    value: str
    """As TOML; secrets and all values of environment variables are masked."""
    origin: Origin
    line: int | None
    """Its line in the file, as the file was when it was loaded."""
    preset: str | None
    """The name of the preset, if it comes from one."""


class Configuration(msgspec.Struct, frozen=True):
    """The effective settings of a supervisor."""

    file: str | None
    """None: they were given on the command line."""
    settings: tuple[SettingOrigin, ...]
