"""Pure: when a node may continue without the database, and when the others may declare it lost.

    members of n ─┬─ n and those that promised not to testify ── a majority ──▶ n continues
                  └─ those that testified after n's lease ── the others are not a majority ──▶ n is lost

Two such sets of one list always share a member, and none both promises and testifies: at most one of the
two decisions can be taken. The list must therefore be the same for both. The node does not know for
certain which of its lists the database holds, because the answer to a renewal may be lost: it needs a
majority of every list that it may hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


def majority(count: int) -> int:
    """The smallest number of members that is more than half of them."""
    return count // 2 + 1


def may_go_on(node_id: str, lists: Iterable[Collection[str]], promised: Collection[str]) -> bool:
    """Whether the node and those that promised are a majority of every list of members."""
    agreed = {node_id, *promised}
    found = [set(members) for members in lists]
    return bool(found) and all(len(agreed & members) >= majority(len(members)) for members in found)


def may_be_declared_lost(node_id: str, members: Collection[str], witnesses: Collection[str]) -> bool:
    """Whether the members that did not testify after the node's lease are not a majority."""
    listed = set(members)
    testified = (listed & set(witnesses)) - {node_id}
    return len(listed) - len(testified) < majority(len(listed))
