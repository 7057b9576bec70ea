"""A Ray cluster that was there before."""

from __future__ import annotations

import msgspec


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """What agents on the machines of a Ray need to know; none of it is secret."""

    ray: str
    """The address of Ray's head."""
    file: str
    """The file of the cluster, which is at the same place on each machine."""
    state_dir: str
    """The state directory that the file names."""
    port: int = 0
    """Where the agents listen; 0: anywhere."""
