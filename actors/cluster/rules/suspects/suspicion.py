"""Pure: whether workers die on one node more than workers of the same groups do elsewhere.

    trusted ─ p < 10⁻⁴, at least 3 workers of 2 groups, and the brakes allow it ─▶ suspect (cordoned):
              two of the dying become witnesses and move elsewhere
    suspect ─ a witness dies there too ─▶ trusted; what happened before is void
    suspect ─ both witnesses live through the hold, and p < 10⁻⁶ ─▶ convicted: drained, its deaths refunded
    suspect ─ neither within three holds ─▶ trusted
    convicted ─ after 10 min, doubling ─▶ on parole: one canary runs there
    on parole ─ the canary dies ─▶ convicted, for twice as long
    on parole ─ the canary lives through the hold ─▶ trusted

The control group is the whole point: deaths are compared per second of life, on the node against the same
groups elsewhere, so that neither a bad worker nor an outage convicts a node. At most 3 deaths of one worker
count. The hold is so long that luck alone survives it in 5 %, for both witnesses in 0.25 %.

Evidence of the machine itself (no space, no descriptors, an I/O error) counts double and needs one group.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf

import msgspec

from ...facts.cases import Case, Convicted, Noticed, OnParole, Suspect, Trusted, is_held
from .binomial import tail

WINDOW_S = 300.0
SUSPECT_P = 1e-4
CONVICT_P = 1e-6
MOST_OF_ONE_WORKER = 3
LEAST_WORKERS = 3
LEAST_GROUPS = 2
SHORTEST_HOLD_S = 30.0
HOLDS = 3.0
"""A suspicion that is not proven after this many holds ends; a hold is this many mean lives long."""
PAROLE_S = 600.0
MOST_DOUBLINGS = 7
"""A parole comes after 21 hours at the latest."""
OVERRULED_S = 3600.0
"""For so long no node is suspected that an operator has uncordoned."""
WITNESSES = 2
LARGEST_SHARE = 5
"""At most one node, or one in this many, is under suspicion or convicted at a time."""


class WorkerLife(msgspec.Struct, frozen=True):
    """One process of a worker on a node."""

    worker: str
    group: str
    node: str
    began: float
    ended: float | None = None
    """None: it lives."""
    died: bool = False
    """It ended by itself, not by an operator, a move, or the loss of its node."""
    hard: bool = False
    """It died, or could not start, because of the machine: ENOSPC, EIO, EROFS, EMFILE, ENOMEM …"""


class Evidence(msgspec.Struct, frozen=True):
    """What speaks against a node."""

    p: float = 1.0
    deaths: int = 0
    """Of those that count."""
    elsewhere: int = 0
    dying: tuple[str, ...] = ()
    """Its workers that died, the most often first."""
    groups: int = 0
    workers: int = 0
    """How many workers of these groups lived there."""
    others: int = 0
    """How many lived elsewhere."""
    others_dying: int = 0
    first: float = 0.0
    """When the first of them died."""
    rate: float = 0.0
    """Deaths per second of life on the node, of the groups that die there."""
    is_hard: bool = False

    @property
    def hold_s(self) -> float:
        """How long a witness must live elsewhere."""
        return SHORTEST_HOLD_S if not self.rate else max(SHORTEST_HOLD_S, HOLDS / self.rate)

    @property
    def is_enough(self) -> bool:
        """Whether it justifies a suspicion."""
        is_wide = len(self.dying) >= LEAST_WORKERS and self.groups >= LEAST_GROUPS
        return self.p < SUSPECT_P and (is_wide or self.is_hard)

    def words(self, now: float) -> str:
        """The evidence for an operator."""
        here = f"{len(self.dying)} of {self.workers} workers died in {now - self.first:.0f} s"
        return f"{here} (elsewhere {self.others_dying} of {self.others})"


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one node's case, and what to do."""

    node: str
    case: Case
    why: str
    moves: tuple[str, ...] = ()
    """Workers that become witnesses: they move elsewhere."""
    refunds: Mapping[str, int] = {}
    """By worker: how many deaths were the node's fault."""


def lives_since_ms(cases: Iterable[Case], now_ms: int) -> int:
    """Since when lives are needed to judge these cases."""
    window = now_ms - WINDOW_S * 1000
    begins = (1000 * _looks_back_to(case) for case in cases)
    return round(min(window, *begins, window))


def _looks_back_to(case: Case) -> float:
    match case:
        case Suspect(evidence_since=since) | OnParole(since=since):
            return since
        case _:
            return inf


# ── evidence ─────────────────────────────────────────────────────────────────────────────


def evidence(lives: Iterable[WorkerLife], node: str, now: float, since: float = 0.0) -> Evidence:
    """What the lives of the last minutes say against a node."""
    begin = max(since, now - WINDOW_S)
    recent = [life for life in lives if life.began <= now and (life.ended is None or life.ended >= begin)]
    deaths: Counter[tuple[str, str, bool]] = Counter()
    for life in recent:
        if life.died and life.ended is not None and life.ended <= now:
            deaths[life.group, life.worker, life.node == node] += 1
    groups = {group for group, _, is_here in deaths if is_here}
    if not groups:
        return Evidence()
    hard = {life.worker for life in recent if life.node == node and life.died and life.hard}
    mine, theirs = _counted(deaths, hard)
    total, here = _life_s(recent, now, begin), _life_s(recent, now, begin, node)
    strata = [(mine[group] + theirs[group], _share(here[group], total[group])) for group in sorted(groups)]
    dying = Counter({worker: count for (_, worker, is_here), count in deaths.items() if is_here})
    present = {(life.worker, life.node == node) for life in recent if life.group in groups}
    others_dying = {worker for group, worker, is_here in deaths if group in groups and not is_here}
    ends = [life.ended for life in recent if life.node == node and life.died and life.ended is not None]
    return Evidence(
        p=tail(strata, mine.total()),
        deaths=mine.total(),
        elsewhere=sum(theirs[group] for group in groups),
        dying=tuple(sorted(dying, key=lambda worker: (-dying[worker], worker))),
        groups=len(groups),
        workers=sum(is_here for _, is_here in present),
        others=sum(not is_here for _, is_here in present),
        others_dying=len(others_dying),
        first=min(ends),
        rate=_rate(recent, node, groups, now),
        is_hard=bool(hard),
    )


def _counted(
    deaths: Mapping[tuple[str, str, bool], int], hard: Collection[str]
) -> tuple[Counter[str], Counter[str]]:
    """By group: the deaths that count on the node, and elsewhere."""
    mine: Counter[str] = Counter()
    theirs: Counter[str] = Counter()
    for (group, worker, is_here), count in deaths.items():
        counted = min(count, MOST_OF_ONE_WORKER)
        if is_here:
            mine[group] += counted * (2 if worker in hard else 1)
        else:
            theirs[group] += counted
    return mine, theirs


def _life_s(
    lives: Iterable[WorkerLife], now: float, begin: float, node: str | None = None
) -> dict[str, float]:
    """By group: the seconds of life since then, on one node or on all."""
    found: dict[str, float] = defaultdict(float)
    for life in lives:
        if node is None or life.node == node:
            end = now if life.ended is None else min(now, life.ended)
            found[life.group] += max(0.0, end - max(begin, life.began))
    return found


def _rate(lives: Iterable[WorkerLife], node: str, groups: Collection[str], now: float) -> float:
    """Deaths per second of life on the node since the first of them: before it the node was well."""
    here = [life for life in lives if life.node == node and life.group in groups]
    ends = sorted(life.ended for life in here if life.died and life.ended is not None)
    if len(ends) < 2:
        return 0.0
    life_s = sum(_life_s(here, now, ends[0]).values())
    return (len(ends) - 1) / max(1.0, life_s)


def _share(here: float, total: float) -> float:
    """Where nothing of the group lives elsewhere, its deaths say nothing about the node."""
    return here / total if total > 0 else 1.0


# ── rulings ──────────────────────────────────────────────────────────────────────────────


def rulings(
    cases: Mapping[str, Case],
    lives: Sequence[WorkerLife],
    now: float,
    spared: Collection[str] = (),
    rooted: Collection[str] = (),
) -> tuple[Ruling, ...]:
    """What changes now.

    Args:
        cases: those of all nodes.
        lives: of the last minutes, and since the earliest suspicion.
        now: the time.
        spared: nodes that the fleet cannot do without.
        rooted: workers that cannot be witnesses, because they run nowhere else.
    """
    found: list[Ruling] = []
    held = sum(map(is_held, cases.values()))
    most = max(1, len(cases) // LARGEST_SHARE)
    recent = [life for life in lives if life.ended is None or life.ended >= now - WINDOW_S]
    dying = Counter(node for node, _ in {(life.node, life.worker) for life in recent if life.died})
    hard = {life.node for life in recent if life.hard}
    for node, case in sorted(cases.items()):
        match case:
            case Trusted() | Noticed():
                is_wide = dying[node] >= LEAST_WORKERS or node in hard
                may_be = is_wide and held < most and node not in spared
                ruling = _suspected(node, case, recent, now, rooted) if may_be else None
                held += ruling is not None
            case Suspect():
                ruling = _tried(node, case, lives, now)
            case Convicted():
                ruling = _parole_due(node, case, now)
            case OnParole():
                ruling = _on_parole(node, case, lives, now)
        if ruling is not None:
            found.append(ruling)
    return tuple(found)


def notices(cases: Mapping[str, Case], lives: Sequence[WorkerLife], now: float) -> tuple[Ruling, ...]:
    """What changes if the cluster only reports it: an operator is notified."""
    found: list[Ruling] = []
    for node, case in sorted(cases.items()):
        seen = evidence(lives, node, now, case.since)
        if isinstance(case, Trusted) and seen.is_enough:
            found.append(Ruling(node=node, case=Noticed(now), why=seen.words(now)))
        elif isinstance(case, Noticed) and now - case.since > WINDOW_S:
            found.append(Ruling(node=node, case=Trusted(now), why="it is over"))
    return (*found, *releases(cases, now))


def releases(cases: Mapping[str, Case], now: float) -> tuple[Ruling, ...]:
    """What changes if no node may be held now."""
    return tuple(
        Ruling(node=node, case=Trusted(now), why="suspects are no longer acted on")
        for node, case in sorted(cases.items())
        if is_held(case)
    )


def _suspected(
    node: str, case: Trusted | Noticed, lives: Sequence[WorkerLife], now: float, rooted: Collection[str]
) -> Ruling | None:
    since = case.since if isinstance(case, Trusted) else 0.0
    found = evidence(lives, node, now, since)
    witnesses = tuple(worker for worker in found.dying if worker not in rooted)[:WITNESSES]
    if not found.is_enough or len(witnesses) < WITNESSES:
        return None
    why = found.words(now)
    suspect = Suspect(now, max(since, now - WINDOW_S), witnesses, found.hold_s, why, found.dying)
    return Ruling(node=node, case=suspect, why=why, moves=witnesses)


def _tried(node: str, case: Suspect, lives: Sequence[WorkerLife], now: float) -> Ruling | None:
    elsewhere = [
        life
        for life in lives
        if life.worker in case.witnesses and life.node != node and life.began >= case.since
    ]
    died = next((life for life in elsewhere if life.died), None)
    if died is not None:
        return Ruling(node=node, case=Trusted(now), why=f"its witness {died.worker} died elsewhere too")
    seen = evidence(lives, node, now, case.evidence_since)
    # Those that are left there keep dying: by now it is known better how long they live.
    hold_s = min(case.hold_s, seen.hold_s)
    if seen.p < CONVICT_P and _have_held(case, elsewhere, hold_s, now):
        return _convicted(node, case, lives, now)
    if now - case.since > HOLDS * case.hold_s:
        return Ruling(node=node, case=Trusted(now), why="nothing was proven in time")
    return None


def _have_held(case: Suspect, elsewhere: Iterable[WorkerLife], hold_s: float, now: float) -> bool:
    """Whether each witness has lived elsewhere for long enough."""
    lived: Counter[str] = Counter()
    for life in elsewhere:
        lived[life.worker] += int(1000 * ((life.ended if life.ended is not None else now) - life.began))
    return all(lived[witness] >= 1000 * hold_s for witness in case.witnesses)


def _convicted(node: str, case: Suspect, lives: Iterable[WorkerLife], now: float) -> Ruling:
    since = case.evidence_since
    refunds = Counter(
        life.worker for life in lives if life.node == node and life.died and (life.ended or 0.0) >= since
    )
    guilty = Convicted(now, now + PAROLE_S, case.hold_s, guilty_since=since, dying=case.dying)
    return Ruling(
        node=node, case=guilty, why=f"{case.why}; its witnesses live elsewhere", refunds=dict(refunds)
    )


def _parole_due(node: str, case: Convicted, now: float) -> Ruling | None:
    if now < case.parole_at:
        return None
    paroled = OnParole(now, case.hold_s, case.times, case.dying)
    return Ruling(node=node, case=paroled, why="a canary may run there")


def _on_parole(node: str, case: OnParole, lives: Sequence[WorkerLife], now: float) -> Ruling | None:
    there = [life for life in lives if life.node == node and life.began >= case.since]
    dead = next((life for life in there if life.died), None)
    if dead is not None:
        times = case.times + 1
        parole_at = now + PAROLE_S * 2.0 ** min(times - 1, MOST_DOUBLINGS)
        again = Convicted(now, parole_at, case.hold_s, times, case.since, case.dying)
        return Ruling(node=node, case=again, why=f"the canary {dead.worker} died")
    if any((life.ended or now) - life.began >= case.hold_s for life in there):
        return Ruling(node=node, case=Trusted(now), why="the canary lives")
    return None


def overruled(now: float) -> Trusted:
    """The case after an operator has uncordoned the node: for a while nothing speaks against it."""
    return Trusted(now + OVERRULED_S)
