"""The configuration file: what may stand in it, and what it means.

`load(path)` gives a `Config` or raises `ConfigError` with every problem of the file at once.
"""

from .file_tables import MOST_MEMBERS
from .loader import load, parse
from .model import Config, Group
from .problems import ConfigError, ConfigProblem
from .schema import schema

__all__ = ["MOST_MEMBERS", "Config", "ConfigError", "ConfigProblem", "Group", "load", "parse", "schema"]
