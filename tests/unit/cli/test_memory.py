"""The garbage collector of a supervisor's own process, from its first line to the end of its start."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import gc, threading
from rekindle.cli.supervise.platform import memory
memory.SETTLE_S = 0.01
memory.load_undisturbed()
print(gc.isenabled())
memory.settle_soon()
for thread in threading.enumerate()[1:]:
    thread.join()
print(gc.get_freeze_count() > 0, gc.get_threshold()[0])
"""


def test_no_garbage_is_collected_until_memory_is_settled_after_the_start() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["False", "True 10000"]
