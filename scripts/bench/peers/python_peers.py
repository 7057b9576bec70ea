"""Peers from PyPI and the standard library."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from ..arena import Arena
from ..floor import Programs
from .peer import Launch, Peer, run_tool

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent


def _pip(*packages: str) -> Callable[[Path], None]:
    def install(folder: Path) -> None:
        run_tool(sys.executable, "-m", "venv", str(folder))
        run_tool(str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *packages)

    return install


def _nothing(folder: Path) -> None:
    pass


def _supervisord(installed: Path, folder: Path, arena: Arena, built: Programs) -> Launch:
    config = folder / "supervisord.conf"
    config.write_text(f"""\
[supervisord]
nodaemon = true
logfile = /dev/null
logfile_maxbytes = 0
pidfile = {folder}/pid
minfds = {max(1024, 4 * arena.slots + 64)}

[program:bench]
command = {" ".join(built.worker)} {arena.path} %(process_num)d
process_name = %(process_num)d
numprocs = {arena.slots}
numprocs_start = 0
startsecs = 0
startretries = 1000000
autorestart = true
stdout_logfile = NONE
stderr_logfile = NONE
""")
    return Launch([str(installed / "bin" / "supervisord"), "-c", str(config)])


def _circus(installed: Path, folder: Path, arena: Arena, built: Programs) -> Launch:
    config = folder / "circus.ini"
    watchers = "".join(
        f"[watcher:{slot}]\ncmd = {' '.join(built.worker)} {arena.path} {slot}\ncopy_env = true\n\n"
        for slot in range(arena.slots)
    )
    endpoints = f"endpoint = ipc://{folder}/e\npubsub_endpoint = ipc://{folder}/p\n"
    config.write_text(f"[circus]\ncheck_delay = 0.1\n{endpoints}\n{watchers}")
    return Launch([str(installed / "bin" / "circusd"), str(config)])


def _gunicorn(installed: Path, folder: Path, arena: Arena, built: Programs) -> Launch:
    command = [str(installed / "bin" / "gunicorn"), "--preload", "--workers", str(arena.slots)]
    where = ["--bind", f"unix:{folder}/socket", "--config", str(HERE / "gunicorn_hooks.py")]
    return Launch([*command, *where, "scripts.bench.peers.gunicorn_app:app"], {"PYTHONPATH": str(ROOT)})


def _pool(installed: Path, folder: Path, arena: Arena, built: Programs) -> Launch:
    command = [sys.executable, "-m", "scripts.bench.peers.pool", str(arena.path), str(arena.slots)]
    return Launch(command, {"PYTHONPATH": str(ROOT)})


PYTHON_PEERS = (
    Peer("supervisord", _pip("supervisor", "setuptools<81"), _supervisord),
    Peer("circus", _pip("circus"), _circus),
    Peer("gunicorn, preload", _pip("gunicorn"), _gunicorn, is_python=True),
    Peer("multiprocessing.Pool", _nothing, _pool, is_python=True),
)
