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

import msgspec
from msgspec.structs import replace

from .binomial import tail

WINDOW_S = 300.0
SUSPECT_P = 1e-4
CONVICT_P = 1e-6
MOST_OF_ONE_WORKER = 3
LEAST_WORKERS = 3
LEAST_GROUPS = 2
SHORTEST_HOLD_S = 30.0
HOLDS = 3.0
"""After so many holds a suspicion that was not proven ends; a hold is this many mean lives long."""
PAROLE_S = 600.0
LARGEST_SHARE = 5
"""At most one node, or one in so many, is under suspicion or convicted at a time."""


class Life(msgspec.Struct, frozen=True):
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


# ── states ───────────────────────────────────────────────────────────────────────────────


class Trusted(msgspec.Struct, frozen=True, tag=True):
    """Nothing speaks against it; evidence from before `since` is void."""

    since: float = 0.0


class Suspect(msgspec.Struct, frozen=True, tag=True):
    """It gets no workers, and witnesses run elsewhere."""

    since: float
    evidence_since: float
    witnesses: tuple[str, ...]
    hold_s: float
    why: str


class Convicted(msgspec.Struct, frozen=True, tag=True):
    """It is drained."""

    since: float
    parole_at: float
    hold_s: float
    times: int = 1


class OnParole(msgspec.Struct, frozen=True, tag=True):
    """One worker may run there."""

    since: float
    hold_s: float
    times: int


Case = Trusted | Suspect | Convicted | OnParole


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one node's case, and what to do."""

    node: str
    case: Case
    why: str
    moves: tuple[str, ...] = ()
    """Workers that become witnesses: they move elsewhere."""
    refunds: Mapping[str, int] = {}
    """By worker: how many deaths were the node's fault."""


# ── evidence ─────────────────────────────────────────────────────────────────────────────


def evidence(lives: Iterable[Life], node: str, now: float, since: float = 0.0) -> Evidence:
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
    return Evidence(
        p=tail(strata, mine.total()),
        deaths=mine.total(),
        elsewhere=sum(theirs[group] for group in groups),
        dying=tuple(sorted(dying, key=lambda worker: (-dying[worker], worker))),
        groups=len(groups),
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


def _life_s(lives: Iterable[Life], now: float, begin: float, node: str | None = None) -> dict[str, float]:
    """By group: the seconds of life since then, on one node or on all."""
    found: dict[str, float] = defaultdict(float)
    for life in lives:
        if node is None or life.node == node:
            end = now if life.ended is None else min(now, life.ended)
            found[life.group] += max(0.0, end - max(begin, life.began))
    return found


def _rate(lives: Iterable[Life], node: str, groups: Collection[str], now: float) -> float:
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
    cases: Mapping[str, Case], lives: Sequence[Life], now: float, spared: Collection[str] = ()
) -> tuple[Ruling, ...]:
    """What changes now; `spared` are nodes that the fleet cannot do without."""
    found: list[Ruling] = []
    recent = [life for life in lives if life.ended is None or life.ended >= now - WINDOW_S]
    dying = Counter(node for node, _ in {(life.node, life.worker) for life in recent if life.died})
    held = sum(not isinstance(case, Trusted) for case in cases.values())
    for node, case in sorted(cases.items()):
        match case:
            case Trusted():
                may_be = dying[node] > 0 and held < max(1, len(cases) // LARGEST_SHARE)
                ruling = _suspected(node, case, recent, now) if may_be and node not in spared else None
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


def _suspected(node: str, case: Trusted, lives: Sequence[Life], now: float) -> Ruling | None:
    found = evidence(lives, node, now, case.since)
    if not found.is_enough:
        return None
    why = f"{len(found.dying)} of its workers died {found.deaths} times; elsewhere {found.elsewhere} times"
    suspect = Suspect(now, max(case.since, now - WINDOW_S), found.dying[:2], found.hold_s, why)
    return Ruling(node=node, case=suspect, why=why, moves=suspect.witnesses)


def _tried(node: str, case: Suspect, lives: Sequence[Life], now: float) -> Ruling | None:
    elsewhere = [
        life
        for life in lives
        if life.worker in case.witnesses and life.node != node and life.began >= case.since
    ]
    died = next((life for life in elsewhere if life.died), None)
    if died is not None:
        return Ruling(node=node, case=Trusted(now), why=f"{died.worker} died on {died.node} too")
    lived: Counter[str] = Counter()
    for life in elsewhere:
        lived[life.worker] += int(1000 * ((life.ended if life.ended is not None else now) - life.began))
    has_held = all(lived[witness] >= 1000 * case.hold_s for witness in case.witnesses)
    p = evidence(lives, node, now, case.evidence_since).p if has_held else 1.0
    if has_held and p < CONVICT_P:
        guilty_since = case.evidence_since
        refunds = Counter(
            life.worker
            for life in lives
            if life.node == node and life.died and (life.ended or 0.0) >= guilty_since
        )
        guilty = Convicted(now, now + PAROLE_S, case.hold_s)
        why = f"its witnesses live elsewhere; {case.why}"
        return Ruling(node=node, case=guilty, why=why, refunds=dict(refunds))
    if now - case.since > HOLDS * case.hold_s:
        return Ruling(node=node, case=Trusted(now), why="nothing was proven in time")
    return None


def _parole_due(node: str, case: Convicted, now: float) -> Ruling | None:
    if now < case.parole_at:
        return None
    return Ruling(node=node, case=OnParole(now, case.hold_s, case.times), why="a canary may run there")


def _on_parole(node: str, case: OnParole, lives: Sequence[Life], now: float) -> Ruling | None:
    there = [life for life in lives if life.node == node and life.began >= case.since]
    if any(life.died for life in there):
        times = case.times + 1
        again = Convicted(now, now + PAROLE_S * 2.0 ** (times - 1), case.hold_s, times)
        return Ruling(node=node, case=again, why="the canary died")
    if any((life.ended or now) - life.began >= case.hold_s for life in there):
        return Ruling(node=node, case=Trusted(now), why="the canary lives")
    return None


def overruled(now: float) -> Trusted:
    """The case after an operator has uncordoned the node: what happened before is void."""
    return Trusted(now)


def extended(case: Convicted, by_s: float) -> Convicted:
    """A parole that comes later, because the fleet has no worker to spare for it."""
    return replace(case, parole_at=case.parole_at + by_s)
