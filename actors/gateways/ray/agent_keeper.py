"""The keeper of an agent: `python -m rekindle.actors.gateways.ray.agent_keeper STATE_DIR WORD…`.

Where Ray was there first, there may be no service manager. The keeper stands outside of Ray, which kills
what its own processes have started: its parent ends at once. It ends if another keeper has the state
directory, and with an agent that was shut down or that cannot read its file; it starts any other one again.
The agent writes to `agent.log` there. Ray has its processes killed first when memory runs out, and gives
them little of the processors: neither is for the agent and its workers.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

LOCK, LOG = "keeper.lock", "agent.log"
FIRST_S, LONGEST_S, LIVED_S = 0.1, 15.0, 30.0
KEPT = "REKINDLE_KEPT"
"""In the environment of an agent that a keeper runs: Ray's machines get agents from Ray, not from a service
manager."""
OVER = (0, 2)
"""Exit codes of an agent after which another one would change nothing."""


def keep(state_dir: Path, command: tuple[str, ...]) -> None:
    """Run the agent again and again, unless another keeper does."""
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    lock = os.open(state_dir / LOCK, flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    log = os.open(state_dir / LOG, flags | os.O_APPEND, 0o600)
    environment = {**os.environ, KEPT: "1"}
    delay_s = FIRST_S
    while True:
        began = time.monotonic()
        code = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False, env=environment
        ).returncode
        if code in OVER:
            return
        if time.monotonic() - began > LIVED_S:
            delay_s = FIRST_S
        time.sleep(delay_s)
        delay_s = min(LONGEST_S, delay_s * 2)


def main(state_dir: str, *command: str) -> None:
    """Leave the process that has started this one, and keep the agent."""
    if os.fork():
        os._exit(0)
    os.setsid()
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("0")
    with suppress(OSError):  # only root may
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(quiet, number)
    keep(Path(state_dir), command)


if __name__ == "__main__":
    main(*sys.argv[1:])
