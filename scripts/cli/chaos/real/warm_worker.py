"""The scripted worker as a function, for runs in which warm processes fork the workers."""

from __future__ import annotations

import os
import signal

from rekindle.worker import Worker

from .scripted_worker import ScriptedWorker

FOLDER = "CHAOS_FOLDER"
"""The variable with the folder of the run."""


def serve(worker: Worker) -> None:
    """Follow one life of the scenario, which decides alone what is sent to the supervisor."""
    assert worker._heartbeat is not None
    assert worker._channel is not None
    worker._heartbeat._hearing.acquire()  # the thread of the heartbeat waits for this until the end
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ScriptedWorker(os.environ[FOLDER], worker.component_id, worker._channel._fd).run()


serve.slow_start = True  # type: ignore[attr-defined]  # the script says when it is healthy
