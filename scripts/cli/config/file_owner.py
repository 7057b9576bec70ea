"""Who may change a configuration file: the supervisor runs what it names, with its own rights."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from .problems import ConfigProblem


def owner_problems(path: Path) -> Iterator[ConfigProblem]:
    """Why others could change what is run; an error if root would run it, otherwise a warning."""
    try:
        found = path.stat()
    except OSError:
        return
    is_root = os.geteuid() == 0
    if stat.S_ISREG(found.st_mode) and found.st_mode & stat.S_IWOTH:
        reason = f"every user may change this file, and with it what is run: chmod o-w {path}"
        yield ConfigProblem(str(path), reason, severity="error" if is_root else "warning")
    trusted = {0, os.geteuid(), int(os.environ.get("SUDO_UID", "0") or 0)}
    if found.st_uid not in trusted:
        # Only a warning: in a container, a mounted file often has an owner that does not exist there.
        reason = f"this file belongs to another user (uid {found.st_uid}), who can change what is run"
        yield ConfigProblem(str(path), reason, severity="warning")
