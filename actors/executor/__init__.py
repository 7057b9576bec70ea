"""A `concurrent.futures.Executor` over supervised workers: a crash fails one future, not all."""

from .rekindle_executor import RekindleExecutor

__all__ = ["RekindleExecutor"]
