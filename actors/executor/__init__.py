"""A `concurrent.futures.Executor` over supervised workers: a crash fails one future, not all."""

from .front import RekindleExecutor

__all__ = ["RekindleExecutor"]
