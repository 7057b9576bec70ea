"""A checkout of the project, as the source of the code that a measurement runs.

Each checkout is measured through its own `scripts/bench/supervised.py`, `streamed.py` and `storm.py`,
because only these know where its modules are. Their arguments, the layout of the shared memory (see
`arena.py`) and `storm.measure_chaos` are the interface between the two checkouts of a comparison.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .arena import Arena

_STOP_S = 60.0
_MAKE_STORE = "import sys; from rekindle.persistence import open_store; open_store(sys.argv[1]).close()"
_WHERE = "import rekindle.actors; print(rekindle.actors.__file__)"


@dataclass(frozen=True, slots=True)
class Supervising:
    """A running supervisor."""

    pid: int
    ready: str
    """The line that it printed once its workers were started."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """The folder of a checkout. It needs no environment of its own: this interpreter runs its code."""

    folder: Path

    def check(self) -> None:
        """Compile its modules, so that the first measured start does not, and import it once.

        Raises:
            SystemExit: the folder is not a checkout of Rekindle.
        """
        if not (self.folder / "scripts" / "bench" / "supervised.py").is_file():
            raise SystemExit(f"{self.folder} is not a checkout of Rekindle with benchmarks")
        code = ("actors", "persistence", "migrations", "worker", "scripts/cli", "scripts/bench")
        subprocess.run([sys.executable, "-m", "compileall", "-q", *code], cwd=self.folder, check=True)
        imported = Path(self.output("-c", _WHERE).strip()).resolve()
        if not imported.is_relative_to(self.folder.resolve()):
            raise SystemExit(f"the code of {self.folder} is not importable: {imported} is imported instead")

    def output(self, *arguments: str) -> str:
        """Run the interpreter with these arguments and the checkout's code; its output."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout

    @contextmanager
    def supervising(self, module: str, arena: Arena, *arguments: str) -> Iterator[Supervising]:
        """Keep the worker of every slot alive while the block runs.

        Args:
            module: `supervised` or `streamed`, of the checkout's `scripts.bench`.
            arena: the slots.
            arguments: what the module takes after the arena, the number of slots and the database.
        """
        with tempfile.TemporaryDirectory(prefix="rekindle-bench-") as folder:
            database = str(Path(folder) / "state" / "rekindle.db")
            # The first start ever also loads the code that creates the tables; measure a later one.
            self.output("-c", _MAKE_STORE, database)
            slots = (str(arena.path), str(arena.slots), database)
            process = subprocess.Popen(
                [sys.executable, "-m", f"scripts.bench.{module}", *slots, *arguments],
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert process.stdin is not None and process.stdout is not None
            try:
                ready = process.stdout.readline()
                arena.wait_until_all_run()
                yield Supervising(process.pid, ready)
            finally:
                process.stdin.close()
                process.stdout.close()
                try:
                    process.wait(_STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                arena.kill_leftovers()

    def environment(self) -> dict[str, str]:
        """The variables with which the code of this checkout is imported."""
        return {**os.environ, "PYTHONPATH": str(self.folder / "scripts" / "import_root")}


THIS = Checkout(Path(__file__).resolve().parents[2])
