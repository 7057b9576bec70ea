"""Whether the head of a Ray cluster takes us: `python -m rekindle.actors.gateways.ray.head_check ADDRESS`.

Ray itself tries for 20 s and then says nothing of tokens. The check asks the head one question, and says in a
sentence what is wrong: it prints that, and exits with 1 if trying again does not help, with 75 if it may. It
imports `ray`, so the supervisor runs it as a process of its own.

Ray has no public way to ask for the versions of a cluster before joining it. `ray._raylet.GcsClient` and its
`internal_kv_get` are private, and used nowhere else. Tested with Ray 2.60.0; `tests/cluster/test_ray.py`
fails if they change.
"""

from __future__ import annotations

import json
import platform
import socket
import sys
from typing import Any

REFUSED, AWAY = 1, 75
REACH_S = 1.0
ASK_S = 2


def is_reached(address: str) -> bool:
    """Whether something listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()
    except (OSError, ValueError):
        return False
    return True


def refusal(address: str) -> str | None:
    """Why Ray cannot be used now; None if it can."""
    return f"the head of Ray at {address} does not answer" if not is_reached(address) else mismatch(address)


def mismatch(address: str) -> str | None:
    """Why a head that is there does not take us, and never will; None if it does."""
    import ray
    from ray import _raylet
    from ray.exceptions import AuthenticationError

    head_client: Any = _raylet.GcsClient  # type: ignore[attr-defined]  # compiled
    try:
        told = head_client(address=address).internal_kv_get(b"CLUSTER_METADATA", b"cluster", timeout=ASK_S)
    except AuthenticationError:
        return (
            f"the head of Ray at {address} refuses the token: secret_file must be the same on all nodes"
            " (with --ray: RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH)"
        )
    except Exception as error:  # noqa: BLE001  # it may be on its way up or down; joining will show
        sys.stderr.write(f"{error}\n")
        return None
    versions = json.loads(told) if told else {}
    ours = {"ray_version": ray.__version__, "python_version": platform.python_version()}
    theirs = {name: str(versions.get(name, version)) for name, version in ours.items()}
    if theirs["ray_version"] != ours["ray_version"] or _minor(theirs) != _minor(ours):
        return (
            f"the head of Ray at {address} runs Ray {theirs['ray_version']} on Python "
            f"{theirs['python_version']}, this machine Ray {ours['ray_version']} on Python "
            f"{ours['python_version']}: install the same on all nodes"
        )
    return None


def _minor(versions: dict[str, str]) -> list[str]:
    return versions["python_version"].split(".")[:2]


def main(address: str) -> int:
    """Check it, and say what is wrong."""
    if not is_reached(address):
        sys.stdout.write(f"{refusal(address)}\n")
        return AWAY
    why = mismatch(address)
    if why is not None:
        sys.stdout.write(f"{why}\n")
    return 0 if why is None else REFUSED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
