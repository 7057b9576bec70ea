"""The commands of `rekindle cluster`."""
