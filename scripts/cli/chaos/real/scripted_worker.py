"""A worker that follows one life of a scenario: `python -I -S scripted_worker.py FOLDER`.

It uses the standard library only and no code of Rekindle, like a program of a user. Its ID is in its
environment, since a rollout starts a copy of a worker with an id of its own. Its life is in
FOLDER/ID.life, in real seconds. Lines that the scenario appends to FOLDER/ID.orders change its
heartbeats. It holds the lock FOLDER/ID.lock, and reports if another process of the worker holds it.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing `typing` takes longer than a life may last
if TYPE_CHECKING:
    from typing import Any

TICK_S = 0.02


class ScriptedWorker:
    """One process of the worker."""

    def __init__(self, folder: str, name: str, channel: int) -> None:
        self.folder = folder
        self.name = name
        self.began = time.monotonic()
        with open(self.path("life")) as file:
            self.life: dict[str, Any] = json.load(file)
        self.channel = channel
        self.heartbeat = self.life.get("heartbeat") or float(os.environ.get("REKINDLE_HEARTBEAT_S", "1"))
        self.interval = self.heartbeat
        self.next_beat = self.began
        self.lost_until = self.slow_until = 0.0
        self.stop_at: float | None = None
        self.orders = open(self.path("orders"), "rb")  # noqa: SIM115  # open until the process ends
        self.orders.seek(0, os.SEEK_END)

    def path(self, kind: str) -> str:
        """A file of this worker."""
        return os.path.join(self.folder, self.name + "." + kind)

    def take_lock(self) -> None:
        """Take the lock; record it if another process of this worker lives."""
        self.lock = os.open(self.path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            entry = {
                "type": "Overlapped",
                "at": self.scenario_time(),
                "worker": self.name,
                "pid": os.getpid(),
            }
            history = os.open(os.path.join(self.folder, "history"), os.O_WRONLY | os.O_APPEND)
            os.write(history, b"\n" + json.dumps(entry).encode() + b"\n")

    def scenario_time(self) -> float:
        """The time of the scenario, in seconds."""
        return float((time.monotonic() - self.life["epoch"]) * self.life["speed"])

    def run(self) -> None:
        """Run until the end of the life."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.take_lock()
        if self.life.get("ignores_term"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            now = time.monotonic()
            age = now - self.began
            self.die_if_due(now, age)
            self.carry_out_orders()
            self.send_heartbeat(now, age)
            self.receive(now, age)

    def after(self, word: str, age: float) -> bool:
        """Whether the time of a setting of its life has come."""
        moment = self.life.get(word)
        return bool(moment is not None and age >= moment)

    def die_if_due(self, now: float, age: float) -> None:
        """End the process if it is time."""
        if self.after("dies_after", age):
            if self.life.get("signal"):
                os.kill(os.getpid(), self.life["signal"])
            os._exit(self.life.get("exit", 1))
        needs = self.life.get("needs_database")
        if needs is not None and age < needs and os.path.exists(os.path.join(self.folder, "database_away")):
            os._exit(1)
        if self.stop_at is not None and now >= self.stop_at:
            os._exit(0)

    def carry_out_orders(self) -> None:
        """Carry out the orders of the scenario."""
        for line in self.orders:
            order = json.loads(line)
            until = time.monotonic() + (order.get("for_s") or 1e9)
            if order["do"] == "lose":
                self.lost_until = until
            elif order["do"] == "slow":
                self.interval, self.slow_until = order["every_s"], until
            elif order["do"] == "calm":
                self.lost_until = self.slow_until = 0.0
            elif order["do"] == "garbage":
                self.send(b"\xff{no frame\n" * order["lines"])

    def send_heartbeat(self, now: float, age: float) -> None:
        """Send a heartbeat if one is due and allowed."""
        if self.slow_until and now >= self.slow_until:
            self.interval, self.slow_until, self.next_beat = self.heartbeat, 0.0, now
        silent = (
            self.after("hangs_after", age)
            or self.after("stops_heartbeating_after", age)
            or now < self.lost_until
        )
        recovering = self.life.get("says_recovering")
        asks = recovering is not None and age < recovering
        ready = asks or (self.life.get("healthy_after") is not None and age >= self.life["healthy_after"])
        if now < self.next_beat or silent or not ready or self.channel < 0:
            return
        self.next_beat = now + self.interval
        frame: dict[str, object] = (
            {"status": "recovering", "recover_for_s": recovering} if asks else {"status": "healthy"}
        )
        if self.life.get("job") is not None:
            frame["current_job"] = self.life["job"]
        self.send(json.dumps(frame).encode() + b"\n")

    def send(self, data: bytes) -> None:
        """Write to the channel; end if the supervisor has ended."""
        if self.channel >= 0:
            try:
                os.write(self.channel, data)
            except BlockingIOError:
                pass
            except OSError:
                os._exit(0)

    def receive(self, now: float, age: float) -> None:
        """Wait a moment for a request of the supervisor."""
        if self.channel < 0:
            time.sleep(TICK_S)
            return
        if not select.select([self.channel], [], [], TICK_S)[0]:
            return
        data = os.read(self.channel, 65536)
        if not data:
            os._exit(0)
        ignores = self.life.get("ignores_request") or self.after("hangs_after", age)
        if b'"stop"' in data and not ignores and self.stop_at is None:
            self.stop_at = now + self.life.get("stops_after", 0.0)


if __name__ == "__main__":
    ScriptedWorker(sys.argv[1], os.environ["REKINDLE_WORKER"], int(os.environ.get("REKINDLE_FD", "-1"))).run()
