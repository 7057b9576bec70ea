"""Pure: the case of a node on which workers die, as the database keeps it; `rules.suspicion` moves it.

Every change of a case is a ruling with the next number, so that two leaders never give the same one. Times
are seconds of the database's clock.
"""

from __future__ import annotations

import msgspec

from .nodes import NodeState


class Trusted(msgspec.Struct, frozen=True, tag="trusted"):
    """Nothing speaks against it; evidence from before `since` is void."""

    since: float = 0.0


class Noticed(msgspec.Struct, frozen=True, tag="noticed"):
    """Workers die there more than elsewhere, and nothing is done: `suspects = "tell"`."""

    since: float


class Suspect(msgspec.Struct, frozen=True, tag="suspect"):
    """It gets no workers, and witnesses run elsewhere."""

    since: float
    evidence_since: float
    witnesses: tuple[str, ...]
    hold_s: float
    why: str
    dying: tuple[str, ...] = ()
    """Its workers that died, the most often first."""


class Convicted(msgspec.Struct, frozen=True, tag="convicted"):
    """It is drained."""

    since: float
    parole_at: float
    hold_s: float
    times: int = 1
    guilty_since: float = 0.0
    """Deaths there from this time on were the node's fault."""
    dying: tuple[str, ...] = ()


class OnParole(msgspec.Struct, frozen=True, tag="on_parole"):
    """One worker may run there."""

    since: float
    hold_s: float
    times: int
    dying: tuple[str, ...] = ()
    """The workers that died there: one of them should be the canary."""


Case = Trusted | Noticed | Suspect | Convicted | OnParole

OWN_STATES = (NodeState.UP, NodeState.SUSPECT, NodeState.CONVICTED, NodeState.PAROLED)
"""The states of a node that a ruling may change; an operator's cordon or drain stays."""


def is_held(case: Case) -> bool:
    """Whether the node does not take workers as others do."""
    return isinstance(case, Suspect | Convicted | OnParole)


def state_under(case: Case) -> NodeState:
    """The state of a node with this case."""
    match case:
        case Suspect():
            return NodeState.SUSPECT
        case Convicted():
            return NodeState.CONVICTED
        case OnParole():
            return NodeState.PAROLED
        case Trusted() | Noticed():
            return NodeState.UP


class KeptRuling(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `rekindle_ruling`."""

    node_id: str
    number: int
    at_ms: int
    case: Case
    why: str
    given_by: str = ""
    """The operator who has overruled the cluster; empty: the cluster itself."""


class GiveRuling(msgspec.Struct, frozen=True, kw_only=True):
    """Change the case of a node, and its state with it; a conviction refunds what died there.

    Guards: it is the next ruling on this node, and a suspicion begins only on a node that is up. A cordon or
    drain of an operator stays.
    """

    node_id: str
    number: int
    case: Case
    why: str


class Overrule(msgspec.Struct, frozen=True, kw_only=True):
    """An operator says that nothing is wrong with a node: its case is closed, and stays so for a while."""

    node_id: str
    by: str
