"""From SIGKILL to the event at a client over loopback, the commit included; many clients; a stalled one.

python -m scripts.bench.parts.events [--rounds N] [--seconds S]
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..arena import Arena
from ..checkout import THIS, Checkout
from ..floor import Programs, fresh_arena, programs
from ..measure import Summary

CLIENTS = 64
EVENTS_PER_DEATH = 4
"""status_changed, worker_died, worker_started, status_changed."""
_DEADLINE_S = 30.0
_DIED = b"event: worker_died\n"


@dataclass(frozen=True, slots=True)
class EventFigures:
    """The figures of the events."""

    single: Summary
    """From SIGKILL to the event at one client."""
    crowd: Summary
    """The same at each of many clients, at about a hundred events a second."""
    beside_a_stalled_one: Summary
    """The same with one more client that reads nothing."""
    events: int
    """How many each of the many clients received: all of them, in order."""
    clients: int = CLIENTS


class Client:
    """Reads the stream, and records the time of each death and the numbers of the events."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(b"GET /api/v1/events HTTP/1.0\r\nhost: bench\r\n\r\n")
        self.numbers: list[int] = []
        self.deaths: list[tuple[int, int, int]] = []
        """(slot, generation, monotonic nanoseconds)"""
        self._buffer = bytearray()

    def read(self) -> None:
        """Read what has arrived."""
        self._buffer += self.socket.recv(262_144)
        now = time.monotonic_ns()
        *frames, rest = bytes(self._buffer).split(b"\n\n")
        self._buffer = bytearray(rest)
        for frame in frames:
            self._take(frame, now)

    def _take(self, frame: bytes, now: int) -> None:
        _, found, number = frame.rpartition(b"\nid: ")
        if found:
            self.numbers.append(int(number))
        if frame.startswith(_DIED):
            died = json.loads(frame.split(b"\ndata: ", 1)[1].split(b"\n", 1)[0])
            self.deaths.append((int(died["component_id"].rpartition(":")[2]), died["generation"], now))


@dataclass
class Clients:
    """Many clients, read by one thread in turn."""

    port: int
    size: int
    all: list[Client] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        for _ in range(self.size):
            client = Client(self.port)
            self.all.append(client)
            self._selector.register(client.socket, selectors.EVENT_READ, client)

    def read_for(self, seconds: float) -> None:
        """Read what arrives in this many seconds."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                key.data.read()

    def read_until_deaths(self, count: int) -> None:
        """Read until every client has received this many deaths."""
        deadline = time.monotonic() + _DEADLINE_S
        while any(len(client.deaths) < count for client in self.all):
            if time.monotonic() > deadline:
                raise TimeoutError(f"received {[len(client.deaths) for client in self.all]} of {count}")
            self.read_for(0.05)

    def close(self) -> None:
        """Close all connections."""
        self._selector.close()
        for client in self.all:
            client.socket.close()


@contextmanager
def streaming(built: Programs, arena: Arena, code: Checkout = THIS) -> Iterator[int]:
    """Keep every slot's worker alive while the block runs; yields the port of the events."""
    with code.supervising("streamed", arena, *built.worker) as supervising:
        yield int(supervising.ready.split()[1])


def measure_events(built: Programs, *, rounds: int = 300, seconds: float = 10.0) -> EventFigures:
    """Measure one client, then many, then many with one that stalls."""
    with fresh_arena(10) as arena, streaming(built, arena) as port:
        single, _ = kills_at_clients(arena, Clients(port, 1), rounds, every_s=0.02)
        often = round(seconds * 100 / EVENTS_PER_DEATH)
        pace = EVENTS_PER_DEATH / 100
        crowd, events = kills_at_clients(arena, Clients(port, CLIENTS), often, every_s=pace)
        with ExitStack() as stack:
            stalled = stack.enter_context(socket.socket())
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            stalled.connect(("127.0.0.1", port))
            stalled.sendall(b"GET /api/v1/events HTTP/1.0\r\nhost: bench\r\n\r\n")
            beside, _ = kills_at_clients(arena, Clients(port, CLIENTS - 1), often, every_s=pace)
    return EventFigures(single, crowd, beside, events)


def kills_at_clients(arena: Arena, clients: Clients, rounds: int, *, every_s: float) -> tuple[Summary, int]:
    """Kill workers in turn; the times until each client received each death, and each client's events."""
    clients.read_for(0.5)
    killed: list[int] = []
    begun = time.monotonic()
    for number in range(rounds):
        clients.read_for(max(0.0, begun + number * every_s - time.monotonic()))
        killed.append(arena.kill(number % arena.slots))
    clients.read_until_deaths(rounds)
    clients.read_for(0.5)
    clients.close()
    for client in clients.all:
        first = client.numbers[0]
        assert client.numbers == list(range(first, first + len(client.numbers))), "a client missed events"
        assert len(client.numbers) >= rounds * EVENTS_PER_DEATH - EVENTS_PER_DEATH
    times = [
        heard - at for client in clients.all for at, (_, _, heard) in zip(killed, client.deaths, strict=True)
    ]
    return Summary.of(times), len(clients.all[0].numbers)


def lines(figures: EventFigures) -> list[str]:
    """The figures for people."""

    def cell(summary: Summary) -> str:
        return f"{summary.median_ms:.2f} ({summary.p99_ms:.2f}) ms"

    many = f"kill -> event at {figures.clients} clients, 100 events/s: {cell(figures.crowd)}"
    return [
        f"kill -> event at one client: {cell(figures.single)}",
        f"{many}, {figures.events} events each, all in order",
        f"the same beside a stalled client: {cell(figures.beside_a_stalled_one)}",
    ]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m scripts.bench.parts.events", description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    with programs() as built:
        figures = measure_events(built, rounds=options.rounds, seconds=options.seconds)
    print("\n".join(lines(figures)))
    if options.json:
        options.json.write_text(json.dumps(asdict(figures), indent=2) + "\n")


if __name__ == "__main__":
    main()
