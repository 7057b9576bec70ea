"""The configuration file: its keys and their meaning.

`load(path)` returns a `Config` or raises `ConfigError` with every problem of the file at once.
"""

from .file_tables import MOST_MEMBERS
from .loader import load, parse, problems_of
from .model import Config, WorkerTable
from .problems import AddressError, ConfigError, ConfigProblem
from .schema import schema

__all__ = [
    "MOST_MEMBERS",
    "AddressError",
    "Config",
    "ConfigError",
    "ConfigProblem",
    "WorkerTable",
    "load",
    "parse",
    "problems_of",
    "schema",
]
