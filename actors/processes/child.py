"""One real child process: its descriptors, its output, its end. Used on the loop after its construction."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from rekindle.worker import begun_jobs
from rekindle.worker.crash_dump import STACK_SIGNAL

from ..deaths.death import Exit
from ..deaths.evidence import Fingerprint, Line, Remains, Spent
from ..facts.frames import Frame
from ..messages.internal.to_proxy import WorkDrained
from ..ports import CancelledJob, Control, SpawnRequest
from ..runtime.lanes import Call
from ..runtime.resilient_actor import tell
from ..spec.program import Command
from .channel import DescriptorSentError
from .logs.worker_log import WorkerLog
from .oom_kills import OomKills
from .spawn.pipes import BEGUN_JOBS_SIZE, CRASH_DUMP_SIZE
from .spawn.spawner import SpawnedProcess
from .takeover.known_child import KnownChild
from .watch.frame_reader import FrameReader
from .watch.output_tail import shown
from .watch.reaper import reap
from .watch.transcript import Transcript
from .watch.worker_output import WorkerOutput

CHUNK = 64 * 1024
LAST_CHUNKS = 16
"""How many chunks are read of a channel after the process has ended; a grandchild may continue to write."""
LAST_LINES = 40
"""How many lines of output are reported with its end."""

CONDITIONS = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting for a disk",
    "T": "stopped",
    "t": "traced",
    "Z": "ended",
}


class Child:
    """One process of ours, from spawn to reap."""

    def __init__(
        self,
        request: SpawnRequest,
        spawned: SpawnedProcess,
        transcript: Transcript,
        oom_kills: int | None = None,
        fingerprint: Callable[[], Fingerprint | None] = Fingerprint,
        log: WorkerLog | None = None,
    ) -> None:
        self.request = request
        self.id = request.spec.id
        self.generation = request.generation
        self.pid = spawned.pid
        self.pidfd = spawned.pidfd
        self.channel = spawned.channel
        self.notify = spawned.notify
        self.finish_notices: Call = lambda: None
        """Reads the last of what it says over its notify socket."""
        streams = (spawned.stdout, spawned.stderr)
        self.output = WorkerOutput(self.id, self.generation, streams, transcript, log)
        self.exit: Exit | None = None
        self.start_note = spawned.note
        self.cgroup = spawned.cgroup
        """Its control group, if it has one of its own."""
        self.start = spawned.start
        """The number that marks the processes of this start."""
        self.left: tuple[int, ...] | None = None
        """Processes that it left behind when it ended; None: these were not looked for."""
        self._began = time.monotonic()
        self._fingerprint = fingerprint
        self._spawned = spawned
        self._kills_before = oom_kills
        self._last_signal: int | None = None
        self._stack_signal: int | None = None
        self._usage: Spent | None = None
        self._reader = FrameReader(request.spec.health.max_bad_frames)
        self._violation_reported = False

    # ── an upgrade of the supervisor ─────────────────────────────────────────────────────

    def known(self) -> tuple[KnownChild, dict[str, int]]:
        """What is handed over of it, and its descriptors."""
        output, streams = self.output.known()
        own = {
            "pidfd": self.pidfd,
            "channel": -1 if self.channel is None else self.channel.fileno(),
            "notify": -1 if self.notify is None else self.notify.fileno(),
            "crash_dump": self._spawned.crash_dump,
        }
        known = KnownChild(
            component_id=self.id,
            generation=self.generation,
            pid=self.pid,
            began=self._began,
            start=self.start,
            start_note=self.start_note,
            output=output,
            frame=self._reader.rest,
            refused=self._reader.refused,
            violation=self._reader.violation,
            last_signal=self._last_signal,
            stack_signal=self._stack_signal,
            oom_kills=self._kills_before,
            fingerprint=self._fingerprint() or Fingerprint(),
            notify_address=None if self.notify is None else self.notify.address,
            cgroup=None if self.cgroup is None else str(self.cgroup.path),
            counts_memory=self.cgroup is not None and self.cgroup.counts_memory,
        )
        return known, {name: each for name, each in {**own, **streams}.items() if each != -1}

    def take_over(self, known: KnownChild) -> None:
        """Go on where the former program of this process stopped."""
        self._began = known.began
        self._last_signal, self._stack_signal = known.last_signal, known.stack_signal
        self._reader.take_over(known.frame, known.refused, known.violation)
        self.output.take_over(known.output)

    # ── what it sends ─────────────────────────────────────────────────────────────────────

    def read_frames(self, now: float) -> tuple[list[Frame], bool]:
        """What the channel holds, and whether it is still open."""
        assert self.channel is not None
        try:
            data = self.channel.receive(CHUNK)
        except BlockingIOError:
            return [], True
        except DescriptorSentError:
            self._reader.violation = "it sent a descriptor"
            return [], False
        except OSError:
            data = b""
        frames = list(self._reader.feed(data, now) if data else self._reader.finish(now))
        if frames:
            self._stack_signal = frames[-1].stack_signal
        return frames, bool(data)

    def last_frames(self, now: float) -> list[Frame]:
        """The remaining frames of an ended process; a last line without a line end counts."""
        frames: list[Frame] = []
        if self.channel is not None:
            for _ in range(LAST_CHUNKS):
                try:
                    data = self.channel.receive(CHUNK)
                except (OSError, DescriptorSentError):  # nothing more, or another process holds it open
                    break
                if not data:
                    break
                frames += self._reader.feed(data, now)
            frames += self._reader.finish(now)
        return frames

    def new_violation(self) -> str | None:
        """The protocol violation for which it must be ended; returned once."""
        if self._reader.violation is None or self._violation_reported:
            return None
        self._violation_reported = True
        return self._reader.violation

    # ── what is done to it ───────────────────────────────────────────────────────────────

    def send(self, control: Control | CancelledJob) -> None:
        """Send it a control line; a worker that does not read its channel misses it."""
        if self.channel is not None:
            with suppress(OSError):
                self.channel.send(_control_line(control))

    def report_drained(self, problem: str = "") -> None:
        """Tell its proxy that it has no work left, or why it cannot be drained."""
        tell(self.request.observer, WorkDrained(self.id, self.generation, problem))

    def signal(self, signum: int) -> None:
        """Send it a signal; SIGKILL reaches the whole group."""
        self._last_signal = signum
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signum)
        if signum == signal.SIGKILL:
            self._kill_group()
            self.kill_cgroup()

    @property
    def can_show_stacks(self) -> bool:
        """Whether it has reported a signal for that: in a frame, or in the file for its stacks."""
        if isinstance(self.request.spec.run, Command) and self._spawned.crash_dump != -1:
            self._stack_signal = self._announced_signal()
        return self._stack_signal is not None

    def _announced_signal(self) -> int | None:
        """The signal that the program announced, if it still catches it: it may run another program now."""
        with suppress(OSError, ValueError, IndexError):
            words = os.pread(self._spawned.crash_dump, 20, CRASH_DUMP_SIZE).split()
            with open(f"/proc/{self.pid}/status", "rb") as status:
                caught = int(status.read().split(b"SigCgt:")[1].split()[0], 16)
            if words[:2] == [b"stacks", b"%d" % STACK_SIGNAL] and caught >> (STACK_SIGNAL - 1) & 1:
                return STACK_SIGNAL
        return None

    def show_stacks(self) -> None:
        """Ask it to write its stacks, if it reported that it can; the signal kills other programs."""
        if self._stack_signal is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, self._stack_signal)

    def reap(self, *, wait: bool = False) -> Exit | None:
        """Kill the rest of its process group, then reap it; None while a debugger holds it.

        In this order: while the zombie exists, no other group can have its number.
        """
        self._kill_group()
        taken = (Exit(), None) if self.pidfd == -1 else reap(self.pidfd, wait=wait)
        if taken is None:
            return None
        exit_, self._usage = taken
        return exit_

    @property
    def is_code_known(self) -> bool:
        """Whether the lookup of its code is done."""
        return self._fingerprint() is not None

    @property
    def lived_s(self) -> float:
        """How long it has lived."""
        return time.monotonic() - self._began

    def remains(self, memory: OomKills) -> Remains:
        """The evidence of its end, after it was reaped."""
        assert self.exit is not None
        # Read the OOM counter only where it can be the reason.
        is_killed = self.exit.signal == signal.SIGKILL and self._last_signal is None
        return Remains(
            pid=self.pid,
            usage=self._usage,
            output=self._last_lines(),
            last_words=self._crash_dump(),
            sent=self._last_signal,
            oom_kills=self._oom_kills(memory) if is_killed else None,
            counted_alone=self.cgroup is not None and self.cgroup.oom_kills() is not None,
            memory_limit_kb=memory.limit_kb,
            fingerprint=self._fingerprint() or Fingerprint(),
            begun_jobs=self._begun_jobs() if self.request.spec.serves else None,
            left=self.left,
        )

    def _oom_kills(self, memory: OomKills) -> int | None:
        """The kills for lack of memory in its own control group, else in that of the supervisor."""
        own = None if self.cgroup is None else self.cgroup.oom_kills()
        return memory.take(self._kills_before) if own is None else own

    def _last_lines(self) -> tuple[Line, ...]:
        return tuple([(line.stream, line.text) for line in self.output.tail.last(LAST_LINES)])

    def _crash_dump(self) -> str:
        # Most processes leave none, and to read all of it takes a tenth of a millisecond.
        if self._spawned.crash_dump == -1 or os.pread(self._spawned.crash_dump, 1, 0) in (b"", b"\0"):
            return ""
        return shown(os.pread(self._spawned.crash_dump, CRASH_DUMP_SIZE, 0).rstrip(b"\0"))

    def _begun_jobs(self) -> tuple[tuple[int, int], ...] | None:
        if self._spawned.crash_dump == -1 or isinstance(self.request.spec.run, Command):
            return None
        return begun_jobs.read(os.pread(self._spawned.crash_dump, BEGUN_JOBS_SIZE, CRASH_DUMP_SIZE))

    def kill_cgroup(self) -> None:
        """Kill everything in its control group."""
        if self.cgroup is not None:
            self.cgroup.kill()

    def _kill_group(self) -> None:
        try:  # noqa: SIM105  # faster, and the next start waits for this
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def condition(self) -> str:
        """The kernel's state of the process."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as stat:
                letter = stat.read().rpartition(b")")[2].split()[0].decode()
        except (OSError, IndexError):
            return "gone"
        return CONDITIONS.get(letter, letter)

    # ── descriptors ──────────────────────────────────────────────────────────────────────

    def descriptors(self) -> list[int]:
        """Our open descriptors of it, but its output."""
        channel = [] if self.channel is None else [self.channel.fileno()]
        pidfd = [] if self.pidfd == -1 else [self.pidfd]
        notify = [] if self.notify is None else [self.notify.fileno()]
        return [*pidfd, *channel, *notify]

    def close(self) -> None:
        """Close every descriptor but its output."""
        for descriptor in (self.pidfd, self._spawned.crash_dump):
            if descriptor != -1:
                os.close(descriptor)
        for socket in (self.channel, self.notify):
            if socket is not None:
                socket.close()
        self.channel, self.notify, self.pidfd, self._spawned.crash_dump = None, None, -1, -1


def _control_line(control: Control | CancelledJob) -> bytes:
    if isinstance(control, CancelledJob):
        return b'{"do": "cancel", "job": %d, "attempt": %d}\n' % (control.job_id, control.attempt)
    return b'{"do": "%s"}\n' % control.value.encode()
