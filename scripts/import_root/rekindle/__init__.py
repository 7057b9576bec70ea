"""Rekindle supervises worker processes; import from its packages, such as `rekindle.actors`."""

__version__ = "0.1.0"
