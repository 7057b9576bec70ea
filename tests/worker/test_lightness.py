"""What it costs a process to be a worker."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

IMPORT_ROOT = Path(__file__).parents[2] / "scripts" / "import_root"

ALLOWED_MS = 30.0

MODULES = [
    "begun_jobs",
    "channel",
    "crash_dump",
    "executor.task_wire",
    "executor.tasks",
    "guardian",
    "handle",
    "heartbeat",
    "pdeathsig",
    "plain_text",
    "rate_limit",
    "run",
    "status_report",
    "values",
]

FOREIGN = f"""
import sys
sys.path.append({str(IMPORT_ROOT)!r})
for name in {MODULES}:
    __import__(f"rekindle.worker.{{name}}")
known = sys.stdlib_module_names | {{"rekindle", "__main__"}}
print([name for name in sys.modules if name.partition(".")[0] not in known])
print({{name.split(".")[1] for name in sys.modules if name.startswith("rekindle.")}})
"""


def test_the_worker_s_side_imports_the_standard_library_and_itself_only() -> None:
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", FOREIGN], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("[]\n{'worker'}\n", "")


JOBS = f"""
import sys
sys.path.append({str(IMPORT_ROOT)!r})
import rekindle.worker
assert "rekindle.worker.jobs" not in sys.modules
import rekindle.worker.jobs, rekindle.worker.jobs.sqlite
known = sys.stdlib_module_names | {{"rekindle", "__main__"}}
print([name for name in sys.modules if name.partition(".")[0] not in known])
print({{name.split(".")[1] for name in sys.modules if name.startswith("rekindle.")}})
"""


def test_a_worker_that_serves_queues_in_sqlite_needs_no_more_than_that() -> None:
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", JOBS], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("[]\n{'worker'}\n", "")


def test_every_module_of_the_worker_s_side_is_looked_at() -> None:
    side = IMPORT_ROOT / "rekindle" / "worker"
    files = {path.stem for path in side.glob("*.py")}
    files |= {f"executor.{path.stem}" for path in (side / "executor").glob("[a-z]*.py")}
    assert files == {*MODULES, "__init__"}


IMPORT = """
import time
began = time.process_time()
import rekindle.worker
print(1000 * (time.process_time() - began))
"""


def test_importing_the_worker_costs_a_few_milliseconds(tmp_path: Path) -> None:
    """Median of several, from compiled files; of CPU time, which others on the machine do not lengthen."""
    _import_ms(tmp_path)
    assert statistics.median(_import_ms(tmp_path) for _ in range(7)) < ALLOWED_MS


def _import_ms(compiled: Path) -> float:
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPATH": str(IMPORT_ROOT), "PYTHONPYCACHEPREFIX": str(compiled)}
    ended = subprocess.run(
        [sys.executable, "-c", IMPORT], env=env, capture_output=True, text=True, check=True
    )
    return float(ended.stdout)
