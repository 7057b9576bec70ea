"""Turns a scenario and a seed into definite steps, before anything runs.

The same scenario and seed give the same steps on every machine. Delivery draws from another
random stream, so that leaving out a step does not change the others.
"""

from __future__ import annotations

import random
import signal as signals
from collections.abc import Iterator

from .scenarios import moves
from .scenarios.jobs import job_moves
from .scenarios.jobs.job_moves import QUEUE_MOVES
from .scenarios.moves import EVERY_WORKER, Move, Phase
from .scenarios.scenario import Chance, Planned, Scenario, Step

_SIGNALS = (signals.SIGKILL, signals.SIGKILL, signals.SIGSEGV, signals.SIGABRT, signals.SIGTERM)
_AWAY = (
    moves.DatabaseState.LOCKED,
    moves.DatabaseState.GONE,
    moves.DatabaseState.FULL,
    moves.DatabaseState.SLOW,
)
_ACTORS = tuple(moves.ActorName)
_URGENCIES = tuple(moves.StopUrgency)
_PHASES = tuple(Phase)
_FATES = (job_moves.JobFate.FINISHES, *job_moves.JobFate)
_KEYS = (None, None, "a", "b")


def draw(scenario: Scenario, seed: int) -> tuple[Step, ...]:
    """The steps of a scenario under a seed, in the order of their times."""
    chance = random.Random(f"{seed}/{scenario.name}")
    planned = [*scenario.plan]
    for each in scenario.chance:
        planned += _chosen(each, scenario, chance)
    timed = [(_moment(each, chance), number, each) for number, each in enumerate(planned)]
    return tuple(
        Step(number, at, each.move, each.during, each.of) for at, number, each in sorted(timed, key=_when)
    )


def _when(timed: tuple[float, int, Planned]) -> tuple[float, int]:
    return timed[0], timed[1]


def _moment(planned: Planned, chance: random.Random) -> float:
    if planned.latest_s is None:
        return planned.earliest_s
    return round(chance.uniform(planned.earliest_s, planned.latest_s), 3)


def _chosen(each: Chance, scenario: Scenario, chance: random.Random) -> Iterator[Planned]:
    until = scenario.lasts_s if each.until_s is None else each.until_s
    workers = each.workers or scenario.ids
    for _ in range(each.moves):
        at = round(chance.uniform(each.from_s, until), 3)
        worker = chance.choice(workers)
        word = chance.choice(each.words)
        if word in QUEUE_MOVES:
            yield Planned(_of_queue(word, scenario.queues or ("jobs",), chance), at)
        else:
            yield from _moves(word, worker, at, chance)


def _moves(word: str, worker: str, at: float, chance: random.Random) -> Iterator[Planned]:
    """A move of this word, with the move that undoes it if its effect lasts."""
    some = round(chance.expovariate(1 / 15), 3)
    anyone = chance.choice((worker, worker, worker, EVERY_WORKER))
    match word:
        case "stop":
            during, of = (Phase.BACKOFF, worker) if chance.random() < 0.5 else (None, None)
            yield Planned(moves.Stop(anyone), at, None, during, of)
            yield Planned(moves.Start(anyone), at + some)
        case "hasten":
            yield Planned(moves.Stop(anyone), at, None, *chance.choice(((None, None), (Phase.SPAWN, worker))))
            yield from _firmer_stops(chance.choice((anyone, anyone, EVERY_WORKER)), at, chance)
            yield Planned(moves.Start(anyone), at + some)
        case "pause":
            if chance.random() < 0.3:  # it ends by itself
                yield Planned(moves.Pause(anyone, max(0.001, some)), at)
                return
            yield Planned(moves.Pause(anyone), at)
            yield Planned(moves.Resume(anyone), at + some)
        case "kill_supervisor":
            during = chance.choice((None, *_PHASES))
            yield Planned(moves.KillSupervisor(some / 10), at, None, during, worker if during else None)
        case _:
            yield Planned(_move(word, worker, some, chance), at)


def _of_queue(word: str, queues: tuple[str, ...], chance: random.Random) -> Move:
    match word:
        case "cancel_job":
            return job_moves.CancelJob(chance.choice(queues), chance.randrange(10))
        case "pause_queue":
            return job_moves.PauseQueue(
                chance.choice(queues), chance.choice((None, round(chance.uniform(1, 30), 3)))
            )
        case "resume_queue":
            return job_moves.ResumeQueue(chance.choice(queues))
        case "limit_queue":
            return _limits(chance.choice(queues), chance)
        case _:
            return _jobs(queues, chance)


def _firmer_stops(worker: str, at: float, chance: random.Random) -> Iterator[Planned]:
    """The second and the third order of an operator who loses patience, or finds it again."""
    for _ in range(chance.choice((1, 1, 2))):
        at = round(at + chance.expovariate(1 / 3), 3)
        yield Planned(moves.Stop(worker, chance.choice(_URGENCIES)), at)


def _jobs(queues: tuple[str, ...], chance: random.Random) -> job_moves.Enqueue:
    return job_moves.Enqueue(
        chance.choice(queues),
        chance.choice((1, 1, 2, 5)),
        round(chance.expovariate(1 / 4), 3),
        chance.choice(_FATES),
        chance.choice((1, 2, 3, 9)),
        chance.choice((0, 0, 1)),
        chance.choice((0.0, 0.0, round(chance.uniform(1, 20), 3))),
        timeout_s=chance.choice((None, None, None, round(chance.uniform(0.5, 10), 3))),
        expires_s=chance.choice((None, None, None, round(chance.uniform(1, 60), 3))),
        key=chance.choice(_KEYS),
        after=chance.choice((0, 0, 0, 1, 2)),
        batch=chance.random() < 0.2,
    )


def _limits(queue: str, chance: random.Random) -> job_moves.LimitQueue:
    """Some limits, or none."""
    return job_moves.LimitQueue(
        queue,
        chance.choice((None, None, 1, 2)),
        chance.choice((None, None, 1, 4)),
        chance.choice((None, None, 1)),
        chance.choice((None, None, 1, 3)),
        round(chance.uniform(1, 20), 3),
    )


def _move(word: str, worker: str, some: float, chance: random.Random) -> Move:
    match word:
        case "kill":
            return moves.Kill(worker, int(chance.choice(_SIGNALS)))
        case "freeze":
            return moves.Freeze(worker, some)
        case "slow_heartbeats":
            return moves.SlowHeartbeats(worker, round(chance.uniform(1, 30), 3), some * 3)
        case "lose_heartbeats":
            return moves.LoseHeartbeats(worker, some)
        case "probe_fails":
            return moves.ProbeFails(worker, some * 2)
        case "garbage":
            return moves.Garbage(worker, chance.choice((1, 10, 150)))
        case "late_frame":
            return moves.LateFrame(worker, chance.choice((1, 2)))
        case "stale_timer":
            return moves.StaleTimer(worker, chance.choice((1, 2)))
        case "database":
            return moves.Database(chance.choice(_AWAY), some * 2, round(chance.uniform(0.1, 10), 3))
        case "set_clock":
            return moves.SetClock(chance.choice((-1, 1)) * round(10 ** chance.uniform(0, 7.5), 3))
        case "host_sleep":
            return moves.HostSleep(some * 4)
        case "actor_raises":
            return moves.ActorRaises(chance.choice(_ACTORS))
        case "restart":
            return moves.Restart(worker)
        case "upgrade_supervisor":
            return moves.UpgradeSupervisor(chance.choice((1, 1, 2)))
        case "roll_out":
            return moves.RollOut(worker)
        case _:
            return moves.Reset(worker)
