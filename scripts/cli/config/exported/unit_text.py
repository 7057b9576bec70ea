"""Pure: a systemd unit that runs the supervisor of a file."""

from __future__ import annotations

import math
from enum import Enum

from ..model import Config

MARGIN_S = 30
"""How much longer than its slowest worker the supervisor may take to stop."""

_TEXT = """\
{head}[Unit]
Description=Rekindle, workers of {name}
Wants=network-online.target
After=network-online.target
# It is restarted however often that fails: an address in use is free later.
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={program} run {file} --log-json
ExecReload=/bin/kill -HUP $MAINPID
WorkingDirectory={folder}
{user}{sandbox}# Rekindle stops its workers in order; systemd kills only what is left afterwards.
KillMode=mixed
TimeoutStopSec={stop_s}
WatchdogSec=30
Restart=on-failure
RestartSec=1
# An exit code that a restart does not change: bad configuration.
RestartPreventExitStatus=2
LimitNOFILE=1024:524288
# Control groups for workers (cgroup = in the file).
Delegate=yes

[Install]
WantedBy={target}
"""

_EXPORTED = """\
# Made by `rekindle config export --to systemd`. Install it with: rekindle service install {file}
"""

_SANDBOX = """\
# Workers inherit all of this: remove what one of yours cannot live with.
# No program gains rights by set-uid (sudo, ping).
NoNewPrivileges=yes
{protected}"""

_PROTECTED = """\
# /usr, /boot and /etc are read-only, except for the state directory.
ProtectSystem=full
ReadWritePaths=-{state}
"""

_PRIVATE_TMP = """\
# /tmp and /var/tmp of its own.
PrivateTmp=yes
"""


class Scope(Enum):
    """Whose systemd runs the unit."""

    SYSTEM = "multi-user.target"
    USER = "default.target"


def unit_text(
    config: Config, program: str, user: str | None, *, scope: Scope = Scope.SYSTEM, head: str | None = None
) -> str:
    """The unit.

    Args:
        config: the file that it runs.
        program: the path of the command.
        user: who runs it, None for root.
        scope: whose systemd runs it. That of a user cannot protect the file system.
        head: the comment at the top, if it is not for `config export`.
    """
    slowest_s = max((group.template.stop.total_s for group in config.groups), default=0.0)
    levels = 1 + sum(bool(group.waits_for) for group in config.groups)
    file = _quoted(str(config.path))
    protected = _PROTECTED.format(state=_quoted(str(config.state_dir)))
    if not str(config.path).startswith(("/tmp/", "/var/tmp/")):  # it would not find its file there
        protected += _PRIVATE_TMP
    return _TEXT.format(
        head=_EXPORTED.format(file=file) if head is None else head,
        name=config.path.name.replace("%", "%%"),
        program=_quoted(program),
        file=file,
        folder=str(config.path.parent).replace("%", "%%"),
        user="" if user is None or scope is Scope.USER else f"User={user}\n",
        sandbox=_SANDBOX.format(protected=protected if scope is Scope.SYSTEM else ""),
        stop_s=math.ceil(slowest_s * levels) + MARGIN_S,
        target=scope.value,
    )


def _quoted(word: str) -> str:
    """A word as systemd reads it."""
    word = word.replace("%", "%%").replace("$", "$$")
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' if set(word) & set(" '\"\\;") else word
