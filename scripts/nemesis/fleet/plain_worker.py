"""A worker that knows nothing of Rekindle: `python -S plain_worker.py [deaf]`; standard library only.

Run by path, so the modules beside it are imported without their package.
"""

from __future__ import annotations

import signal
import sys
import time

from fate import Fate  # type: ignore[import-not-found]  # the folder of this file is on the path
from witness import Witness  # type: ignore[import-not-found]

TICK_S = 0.05


def main() -> None:
    """Live until fate or a signal ends it."""
    witness = Witness()
    if "deaf" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    fate = Fate(witness)
    while True:
        time.sleep(TICK_S)
        fate.strike()


if __name__ == "__main__":
    main()
