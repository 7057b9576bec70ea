"""Opens the queues at an address."""

from __future__ import annotations

from .claims import Claimant, Claims


def open_claims(address: str, claimant: Claimant) -> Claims:
    """The queues at `sqlite:///path`, a plain path, `postgresql://…`, or those of a supervisor.

    Nothing is connected yet.

    Raises:
        RuntimeError: psycopg is not installed.
        ValueError: the address is none of these.
    """
    scheme, divided, rest = address.partition("://")
    if not divided or scheme == "sqlite":
        from .sqlite import SqliteClaims

        return SqliteClaims(rest.removeprefix("/") if divided else address, claimant)
    if scheme == "rekindle-claims":
        from .relayed.relay_claims import RelayClaims

        return RelayClaims(address, claimant)
    if scheme.partition("+")[0] not in ("postgresql", "postgres"):
        raise ValueError(f"{scheme}:// names neither an SQLite file nor a PostgreSQL database")
    try:
        from .postgres import PostgresClaims
    except ImportError as error:
        raise RuntimeError(
            "jobs in PostgreSQL need psycopg, which is not installed: "
            "pip install 'rekindle-supervisor[postgres]'"
        ) from error
    return PostgresClaims(f"postgresql://{rest}", claimant)
