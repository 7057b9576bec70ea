"""How long everything takes on machines with networks of their own: what the README of clusters may claim."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median, quantiles

import psutil

from rekindle.actors.cluster.cluster_messages import BeginRelease

from .fleet import Fleet
from .truth_checks import Evidence, Fault, violations

OUTAGE_S = 60.0
IDLE_S = 20.0

Told = Callable[[str], None]


def measured(rounds: int, told: Told) -> dict[str, object]:
    """Every figure, on three machines with six workers.

    Raises:
        RoomError: machines or PostgreSQL cannot be had here, or something took forever.
    """
    with Fleet(3, 6) as fleet:
        fleet.start()
        bars = Bars(fleet, rounds, told)
        found: dict[str, object] = {
            "agent": bars.weight(),
            "restart_ms": bars.restarts(),
            "death_to_row_ms": bars.rows(),
            "move_down_ms": bars.moves(),
            "agent_killed_s": bars.agents(),
            "machine_killed_s": bars.lost("machine killed"),
            "cable_cut_s": bars.lost("cable cut"),
            "machine_paused_s": bars.lost("machine paused"),
            "database_away": bars.outage(),
        }
        found["broken"] = [f"{each.check}: {each.text}" for each in violations(bars.evidence())]
        return found


class Bars:
    """Measures one fleet; each method returns its figures and leaves everything running."""

    def __init__(self, fleet: Fleet, rounds: int, told: Told) -> None:
        self._fleet, self._rounds, self._told = fleet, rounds, told
        self._faults: list[Fault] = []

    def evidence(self) -> Evidence:
        """The truth of the workers."""
        fleet = self._fleet
        lives = {id_: fleet.lives(id_) for id_ in fleet.ids}
        fleet.until(lambda: sum(fleet.counted().values()) >= _crashes(fleet), "the counters")
        return Evidence(lives, tuple(self._faults), fleet.counted())

    # ── machines ─────────────────────────────────────────────────────────────────────────

    def lost(self, kind: str) -> dict[str, object]:
        """From the fault until each worker of the machine runs elsewhere."""
        fleet = self._fleet
        times = []
        for number in range(self._rounds):
            fleet.until(lambda: fleet.has_joined() and fleet.all_run(), "everything to run")
            name = self._fullest()
            mine = [id_ for id_, place in fleet.places().items() if place == name]
            since, began = time.time(), time.monotonic()
            self._begin(kind, name)
            fleet.until(lambda: self._all_elsewhere(mine, name), "the workers to run elsewhere")  # noqa: B023
            times.append(time.monotonic() - began)
            self._faults.append(Fault(kind, (name,), since, time.time()))
            self._end(kind, name)
            self._told(f"{kind}, round {number + 1}: {len(mine)} workers elsewhere after {times[-1]:.2f} s")
        return _summary(times)

    def _begin(self, kind: str, name: str) -> None:
        match kind:
            case "machine killed":
                self._fleet.room.machines[name].power_off()
            case "machine paused":
                self._fleet.room.machines[name].pause()
            case _:
                self._fleet.room.cut(name)

    def _end(self, kind: str, name: str) -> None:
        match kind:
            case "machine killed":
                self._fleet.room.power_on(name)
            case "machine paused":
                self._fleet.room.machines[name].resume()
            case _:
                self._fleet.room.plug(name)

    def _fullest(self) -> str:
        places = list(self._fleet.places().values())
        return max(self._fleet.names, key=places.count)

    def _all_elsewhere(self, ids: list[str], name: str) -> bool:
        return all(self._fleet.runs_on(id_) not in (None, name) for id_ in ids)

    @contextmanager
    def _fault(self, kind: str, *nodes: str) -> Iterator[None]:
        began = time.time()
        yield
        self._faults.append(Fault(kind, nodes, began, time.time()))

    # ── workers ──────────────────────────────────────────────────────────────────────────

    def restarts(self, rounds: int = 0) -> dict[str, object]:
        """From the last sign of life of a process that crashes to the first one of the next."""
        fleet = self._fleet
        gaps = []
        for number in range(rounds or self._rounds):
            id_ = fleet.ids[number % len(fleet.ids)]
            known = len(fleet.lives(id_))
            fleet.crash(id_)
            fleet.until(lambda: len(fleet.lives(id_)) > known, "the next process")  # noqa: B023
            before, after = fleet.lives(id_)[-2:]
            gaps.append((after.began - before.last) * 1000)
        return _summary(gaps)

    def rows(self) -> dict[str, object]:
        """From a crash until the database has counted it."""
        import psycopg

        fleet, times = self._fleet, []
        statement = "SELECT coalesce(sum(restarts), 0) FROM rekindle_tenure WHERE component_id = %s"
        with psycopg.connect(fleet.database.local_url, autocommit=True) as connection:
            for number in range(self._rounds):
                id_ = fleet.ids[number % len(fleet.ids)]

                def counted(id_: str = id_) -> int:
                    row = connection.execute(statement, (id_,)).fetchone()
                    return int(row[0]) if row else 0

                known = counted()
                fleet.crash(id_)
                while counted() == known:
                    time.sleep(0.002)
                at = time.time()
                times.append((at - [life for life in fleet.lives(id_) if life.has_crashed][-1].last) * 1000)
                fleet.until(fleet.all_run, "it to run")
        return _summary(times)

    def moves(self) -> dict[str, object]:
        """How long a worker is down that an operator moves."""
        fleet, gaps = self._fleet, []
        for number in range(self._rounds):
            id_ = fleet.ids[number % len(fleet.ids)]
            read = fleet.desk().read()
            known = next(each for each in read.assignments if each.component_id == id_)
            target = next(node for node in read.nodes if node.id != known.node_id)
            order = BeginRelease(component_id=id_, epoch=known.epoch, reason="bars", target=target.id)
            with self._fault("moved", *fleet.names):
                fleet.desk().change(order)
                fleet.until(lambda: fleet.runs_on(id_) == target.name, "the move")  # noqa: B023
            before, after = fleet.lives(id_)[-2:]
            gaps.append((after.began - before.last) * 1000)
        return _summary(gaps)

    # ── agents ───────────────────────────────────────────────────────────────────────────

    def weight(self) -> dict[str, object]:
        """Memory and idle CPU of an agent that has two workers, and of its guardian."""
        name = self._fullest()
        agent = psutil.Process(self._fleet.agent(name))
        guardian = next(each for each in agent.children() if "guardian" in " ".join(each.cmdline()))
        before, began = _cpu_s(agent), time.monotonic()
        time.sleep(IDLE_S)
        percent = 100 * (_cpu_s(agent) - before) / (time.monotonic() - began)
        full = agent.memory_full_info(), guardian.memory_full_info()
        return {
            "agent_rss_mb": round(full[0].rss / 2**20, 1),
            "agent_pss_mb": round(full[0].pss / 2**20, 1),
            "guardian_pss_mb": round(full[1].pss / 2**20, 1),
            "idle_cpu_percent": round(percent, 2),
        }

    def agents(self) -> dict[str, object]:
        """From `kill -9` of an agent until its workers run again on the same node under the same epoch."""
        fleet, times, kept = self._fleet, [], 0
        for _ in range(min(5, self._rounds)):
            fleet.until(lambda: fleet.has_joined() and fleet.all_run(), "everything to run")
            name = self._fullest()
            mine = [id_ for id_, place in fleet.places().items() if place == name]
            counts = {id_: len(fleet.lives(id_)) for id_ in mine}
            with self._fault("agent killed", name):
                began = time.monotonic()
                fleet.kill_agent(name)
                fleet.until(
                    lambda: all(len(fleet.lives(id_)) > count for id_, count in counts.items()),  # noqa: B023
                    "its workers to run again",
                )
                times.append(time.monotonic() - began)
            kept += all(_keeps_its_epoch(fleet, id_) for id_ in mine)
        return {**_summary(times), "under_the_same_epoch": kept}

    # ── the database ─────────────────────────────────────────────────────────────────────

    def outage(self) -> dict[str, object]:
        """What a minute without the database does, and how soon it knows everything afterwards."""
        fleet = self._fleet
        fleet.until(lambda: fleet.has_joined() and fleet.all_run(), "everything to run")
        places, crashes = fleet.places(), _crashes(fleet)
        before = {id_: len(fleet.lives(id_)) for id_ in fleet.ids}
        with self._fault("database killed"):
            fleet.database.kill()
            until = time.monotonic() + OUTAGE_S
            gaps = self.restarts(20)
            time.sleep(max(0.0, until - time.monotonic()))
            fleet.forget_desk()  # its connections are broken, and ours to replace
            fleet.database.start()
            fleet.database.wait()
            back = time.monotonic()
        crashed = _crashes(fleet) - crashes
        stopped = sum(len(fleet.lives(id_)) - count for id_, count in before.items()) - crashed
        fleet.until(lambda: sum(fleet.counted().values()) >= _crashes(fleet), "the counters")
        return {
            "seconds": OUTAGE_S,
            "stopped": stopped,
            "moved": sum(places[id_] != place for id_, place in fleet.places().items()),
            "restart_ms": gaps,
            "all_counted_after_s": round(time.monotonic() - back, 2),
        }


def _keeps_its_epoch(fleet: Fleet, component_id: str) -> bool:
    before, after = fleet.lives(component_id)[-2:]
    return before.token >> 20 == after.token >> 20 and before.node == after.node


def _crashes(fleet: Fleet) -> int:
    return sum(life.has_crashed for id_ in fleet.ids for life in fleet.lives(id_))


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _summary(values: list[float]) -> dict[str, object]:
    p95 = quantiles(values, n=20)[18] if len(values) > 1 else values[0]
    return {
        "rounds": len(values),
        "p50": round(median(values), 2),
        "p95": round(min(p95, max(values)), 2),
        "most": round(max(values), 2),
    }
