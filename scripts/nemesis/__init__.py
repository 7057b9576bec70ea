"""Attacks a real supervisor, and compares what its workers wrote themselves with what Rekindle stored."""
