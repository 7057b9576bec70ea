"""Metrics for Prometheus, with the extra `metrics`."""

from .exposition import Metrics

__all__ = ["Metrics"]
