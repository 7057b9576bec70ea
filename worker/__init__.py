"""Runs inside a supervised process: the standard library only, and light to import.

A worker is a function that the runner (`python -m rekindle.worker.run package.module:function`)
calls with a `Worker`:

    from rekindle.worker import Worker

    def main(worker: Worker) -> None:
        while worker.running:
            with worker.job(42):
                ...
            worker.wait(1.0)
"""

from .handle import Worker, slow_start

__all__ = ["Worker", "slow_start"]
