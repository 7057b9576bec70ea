"""An application whose import starts a thread: a fork of it would not be safe."""

from __future__ import annotations

import threading

from rekindle.worker import Worker

threading.Thread(target=threading.Event().wait, name="poller", daemon=True).start()


def serve(worker: Worker) -> None:
    """Run until asked to stop."""
    worker.wait()
