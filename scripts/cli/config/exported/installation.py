"""The installation that a unit runs: the path of our command, and the user."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from pathlib import Path


def own_program() -> str:
    """The path of the command `rekindle` of this installation."""
    beside = Path(sys.executable).parent / "rekindle"
    return str(beside) if beside.exists() else shutil.which("rekindle") or "rekindle"


def own_user() -> str | None:
    """The user who calls this; None: root."""
    return None if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
