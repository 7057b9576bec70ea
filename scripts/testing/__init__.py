"""For tests of your own workers: a pytest plugin, and the classes behind its fixtures.

pytest loads the plugin wherever Rekindle is installed, so neither it nor this package imports
anything until a test uses a fixture.

    rekindle_system   starts real workers, and stops them after the test
    virtual_time      the same supervisor on a virtual clock: an hour takes milliseconds
    chaos             chooses by a seed when to hurt which worker, for @pytest.mark.chaos(seeds=20)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .seeded_chaos import Chaos
    from .systems import Systems, SystemUnderTest
    from .virtual import VirtualTime

_MODULES = {
    "Chaos": "seeded_chaos",
    "SystemUnderTest": "systems",
    "Systems": "systems",
    "VirtualTime": "virtual",
}

__all__ = ["Chaos", "SystemUnderTest", "Systems", "VirtualTime"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
