"""Peers from Debian and npm. Packages are unpacked into a folder; nothing is installed on the machine."""

from __future__ import annotations

import json
import platform
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from ..arena import Arena
from ..floor import Programs
from .peer import Launch, Peer, PeerMissingError, run_tool

HERE = Path(__file__).parent
_PRESENT = re.compile(
    r"libc6|libgcc|libstdc|debconf|sysuser|init-system|adduser|dpkg|libtinfo|libsystemd|zlib"
)


def unpack(folder: Path, *packages: str) -> None:
    """Download packages of Debian, with the libraries that they name, and unpack them."""
    folder.mkdir(exist_ok=True)
    wanted = set(packages)
    for package in packages:
        listed = run_tool("apt-cache", "depends", "--important", package)
        names = re.findall(r"^\s+(?:Pre)?Depends: ([a-z][a-z0-9.+-]+)$", listed, re.MULTILINE)
        wanted |= {name for name in names if not _PRESENT.search(name)}
    run_tool("apt-get", "download", *sorted(wanted), cwd=folder)
    for file in folder.glob("*.deb"):
        run_tool("dpkg", "-x", str(file), str(folder))


def _found(folder: Path, name: str) -> str:
    """A program of the folder, or of the machine."""
    found = next((each for each in folder.rglob(name) if each.is_file()), None)
    path = str(found) if found else shutil.which(name)
    if path is None:
        raise PeerMissingError(f"there is no {name}")
    return path


def _libraries(folder: Path) -> dict[str, str]:
    folders = {str(file.parent) for file in folder.rglob("*.so*")}
    return {"LD_LIBRARY_PATH": ":".join(sorted(folders))} if folders else {}


def _services(folder: Path, arena: Arena, built: Programs) -> Path:
    """A folder with a `run` for every slot."""
    services = folder / "services"
    for slot in range(arena.slots):
        service = services / str(slot)
        service.mkdir(parents=True)
        run = service / "run"
        run.write_text(f"#!/bin/sh\nexec {' '.join(built.worker)} {arena.path} {slot}\n")
        run.chmod(0o755)
    return services


def _path(program: str) -> dict[str, str]:
    return {"PATH": f"{Path(program).parent}:/usr/bin:/bin:/usr/sbin:/sbin"}


def _runit(installed: Path, folder: Path, arena: Arena, built: Programs) -> Launch:
    program = _found(installed, "runsvdir")
    return Launch([program, str(_services(folder, arena, built))], _path(program) | _libraries(installed))


def _s6(installed: Path, folder: Path, arena: Arena, built: Programs) -> Launch:
    # Without s6-svscan, which looks for the other program in /usr/bin only.
    program = _found(installed, "s6-supervise")
    services = _services(folder, arena, built)
    script = 'for service in "$1"/*; do "$0" "$service" & done; wait'
    return Launch(["sh", "-c", script, program, str(services)], _path(program) | _libraries(installed))


def _install_erlang(folder: Path) -> None:
    unpack(folder, "erlang-base")
    run_tool("env", *_erlang_variables(folder), _erlexec(folder), "-noshell", "-eval", _compile(folder))


def _compile(folder: Path) -> str:
    source, target = json.dumps(str(HERE / "bench_supervisor")), json.dumps(str(folder))
    return f"{{ok, _}} = compile:file({source}, [{{outdir, {target}}}]), halt()."


def _erlexec(folder: Path) -> str:
    return _found(folder, "erlexec")


def _erlang_variables(folder: Path) -> list[str]:
    binaries = Path(_erlexec(folder)).parent
    return [f"ROOTDIR={binaries.parents[1]}", f"BINDIR={binaries}", "EMU=beam"]


def _erlang(installed: Path, folder: Path, arena: Arena, built: Programs) -> Launch:
    variables = dict(each.split("=", 1) for each in _erlang_variables(installed))
    command = [_erlexec(installed), "-noshell", "-pa", str(installed), "+Q", "65536"]
    arguments = ["-s", "bench_supervisor", "main", "-extra", built.worker[0], str(arena.path)]
    return Launch([*command, *arguments, str(arena.slots)], variables | _libraries(installed))


def _install_pm2(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    run_tool("npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--silent", "pm2")


def _pm2(installed: Path, folder: Path, arena: Arena, built: Programs) -> Launch:
    apps = [
        {
            "name": str(slot),
            "script": built.worker[0],
            "args": [str(arena.path), str(slot)],
            "interpreter": "none",
            "exec_mode": "fork",
            "autorestart": True,
            "restart_delay": 0,
            "min_uptime": 0,
            "max_restarts": 1_000_000,
            "out_file": "/dev/null",
            "error_file": "/dev/null",
        }
        for slot in range(arena.slots)
    ]
    ecosystem = folder / "ecosystem.json"
    ecosystem.write_text(json.dumps({"apps": apps}))
    program = str(installed / "node_modules" / ".bin" / "pm2")
    return Launch([program, "start", str(ecosystem), "--no-daemon"], {"PM2_HOME": str(folder / "pm2")})


def _debian(*packages: str) -> Callable[[Path], None]:
    def install(folder: Path) -> None:
        if platform.system() != "Linux":
            raise PeerMissingError("it is for Linux")
        unpack(folder, *packages)

    return install


SYSTEM_PEERS = (
    Peer("runit", _debian("runit"), _runit),
    Peer("s6", _debian("s6", "execline"), _s6),
    Peer("Erlang/OTP", _install_erlang, _erlang),
    Peer("PM2", _install_pm2, _pm2),
)
