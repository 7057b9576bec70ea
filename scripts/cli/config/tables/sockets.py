"""Pure: the listening sockets that a file declares, and which of them a worker gets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.deployment.socket_spec import UNIX, SocketSpec, set_problem, unknown_names
from rekindle.actors.spec.validation import nearest

from ..file_tables import Given
from ..paths import absolute
from ..problems import NOTHING, ConfigFinding
from ..workers.layers import Layers

Sockets = Mapping[str, SocketSpec | None]
"""By name; None: it has a problem, which is reported already."""


def sockets_of(file: Given, folder: Path, findings: list[ConfigFinding]) -> dict[str, SocketSpec | None]:
    """The sockets of a file by name; their problems are added to the findings."""
    sockets: dict[str, SocketSpec | None] = {}
    for name, table in file.get("socket", {}).items():
        try:
            sockets[name] = SocketSpec(name, **{**table, **_listen(table, folder)})
        except SpecError as error:
            sockets[name] = None
            known = {finding.path for finding in findings}
            for problem in error.problems:
                path = ("socket", name) if problem.field == "name" else ("socket", name, problem.field)
                if path not in known:
                    findings.append(ConfigFinding(path, problem.reason, table.get(problem.field, NOTHING)))
    if (twice := set_problem(each for each in sockets.values() if each is not None)) is not None:
        name, reason = twice
        findings.append(ConfigFinding(("socket", name, "listen"), reason))
    return sockets


def sockets_of_worker(
    layers: Layers, sockets: Sockets, findings: list[ConfigFinding]
) -> tuple[SocketSpec, ...]:
    """The sockets that a worker names."""
    names: tuple[str, ...] = layers.setting("sockets", ())
    findings += (
        layers.finding(("sockets",), f"{name[:40]!r} is not a socket of this file{_hint(name, sockets)}")
        for name in names
        if name not in sockets
    )
    chosen = [each for name in dict.fromkeys(names) if (each := sockets.get(name)) is not None]
    if len(set(names)) < len(names):
        findings.append(layers.finding(("sockets",), "names a socket twice"))
    if not names:
        for name in unknown_names(layers.worker.get("command", ()), ()):
            reason = f'has {{socket.{name}}}, and the worker has no sockets = ["{name}"]'
            findings.append(layers.finding(("command",), reason))
    return tuple(chosen)


def unused_sockets(sockets: Collection[str], used: Collection[str]) -> list[ConfigFinding]:
    """Sockets that no worker names: they are not opened."""
    reason = "has no effect: no worker names it in sockets"
    return [ConfigFinding(("socket", name), reason) for name in sockets if name not in used]


def _listen(table: Given, folder: Path) -> dict[str, str]:
    listen = table.get("listen", "")
    path = listen.removeprefix(UNIX)
    if not listen.startswith(UNIX) or not path or "\0" in path:
        return {}
    try:
        return {"listen": f"{UNIX}{absolute(path, folder)}"}
    except ValueError:
        return {}


def _hint(name: str, sockets: Collection[str]) -> str:
    return nearest(name, sockets) or f"; add a table [socket.{name[:40]}]"
