"""Pure: a systemd unit that runs the supervisor of a file."""

from __future__ import annotations

import math

from ..model import Config

MARGIN_S = 30
"""How much longer than its slowest worker the supervisor may take to stop."""

_TEXT = """\
# Made by `rekindle config export --to systemd`. Install it as root:
#   rekindle config export {shown} --to systemd > /etc/systemd/system/rekindle.service
#   systemctl daemon-reload && systemctl enable --now rekindle
[Unit]
Description=Rekindle, workers of {name}
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart={program} run {file} --log-json
ExecReload=/bin/kill -HUP $MAINPID
WorkingDirectory={folder}
{user}# Rekindle stops its workers in order; systemd kills only what is left afterwards.
KillMode=mixed
TimeoutStopSec={stop_s}
WatchdogSec=30
Restart=on-failure
RestartSec=1
# An exit code that a restart does not change: bad configuration.
RestartPreventExitStatus=2
LimitNOFILE=1024:524288

[Install]
WantedBy=multi-user.target
"""


def unit_text(config: Config, program: str, user: str | None) -> str:
    """The unit; `program` is the path of the command, `user` who runs it, None for root."""
    slowest_s = max((group.template.stop.total_s for group in config.groups), default=0.0)
    levels = 1 + sum(bool(group.waits_for) for group in config.groups)
    return _TEXT.format(
        shown=_quoted(str(config.path)),
        name=config.path.name.replace("%", "%%"),
        program=_quoted(program),
        file=_quoted(str(config.path)),
        folder=str(config.path.parent).replace("%", "%%"),
        user="" if user is None else f"User={user}\n",
        stop_s=math.ceil(slowest_s * levels) + MARGIN_S,
    )


def _quoted(word: str) -> str:
    """A word as systemd reads it."""
    word = word.replace("%", "%%").replace("$", "$$")
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' if set(word) & set(" '\"\\;") else word
