"""Pure: a systemd unit that runs the supervisor of a file."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path

from ..model import Config, WorkerTable

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

_SHARED = ("/tmp/", "/var/tmp/")
"""With folders of its own in their place, the supervisor would not find its file, nor others its sockets."""

_EXPORTED = """\
# Made by `rekindle config export --to systemd`. Install it with: rekindle service install {file}
"""

_SANDBOX = """\
# Workers inherit all of this: remove what one of yours cannot live with.
# No program gains rights by set-uid (sudo, ping).
NoNewPrivileges=yes
{protected}"""

_PROTECTED = """\
# /usr, /boot and /etc are read-only, except for what the supervisor writes.
ProtectSystem=full
ReadWritePaths={paths}
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
    written = _written(config)
    protected = _PROTECTED.format(paths=" ".join(f"-{_quoted(each)}" for each in written))
    if not any(f"{each}/".startswith(_SHARED) for each in (str(config.path), *written)):
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


def _written(config: Config) -> list[str]:
    """The folders in which the supervisor writes: its state, the database, log files, unix sockets."""
    found = [config.state_dir]
    if "://" not in config.database:
        found.append(Path(config.database).parent)
    for group in config.groups:
        found += [Path(log).parent for log in _log_files(group)]
        found += [Path(each.path).parent for each in group.template.sockets if each.path is not None]
    return list(dict.fromkeys(str(path) for path in found if str(path) != "/"))


def _log_files(group: WorkerTable) -> list[str]:
    log = group.template.log
    if log is None or log.file is None:
        return []
    # Up to the first placeholder, which stands for a part of the name.
    return [log.file.partition("{")[0] + "x" if "{" in log.file else log.file]


def _quoted(word: str) -> str:
    """A word as systemd reads it."""
    word = word.replace("%", "%%").replace("$", "$$")
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' if set(word) & set(" '\"\\;") else word
