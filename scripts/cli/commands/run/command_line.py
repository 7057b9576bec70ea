"""The configuration of `rekindle run -- CMD`: one worker, made from the words of the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rekindle.actors.processes.spawn.preflight import missing

from ...config import Config, ConfigError, ConfigProblem, parse
from ...config.paths import STATE_DIR
from ...config.toml.toml_text import settings_text, table_text

PRESET = "service"
PLACE = "command line"
"""The file in messages about it."""


def name_of(program: str) -> str:
    """The name of the worker: that of the program, in the letters that a name may have."""
    name = re.sub(r"[^A-Za-z0-9_-]", "-", os.path.basename(program)).strip("-")
    return name[:48] or "command"


def config_of(argv: Sequence[str], name: str | None = None, state_dir: Path | None = None) -> Config:
    """One worker that runs this command with the whole environment, in the current folder.

    Raises:
        ConfigError: a word is not possible, or there is no such program.
    """
    state = str(state_dir) if state_dir is not None else STATE_DIR
    named = name_of(argv[0]) if name is None else name
    worker = {
        "command": list(argv),
        "inherit_env": ["*"],
        "preset": PRESET,
        "expand": False,
        "essential": True,
    }
    text = settings_text({"state_dir": state}) + table_text(("worker", named), worker)
    config = parse(text, Path(PLACE))
    for problem in missing(config.groups[0].template):
        raise ConfigError([ConfigProblem(PLACE, problem.reason)])
    return replace(config, text=text)
