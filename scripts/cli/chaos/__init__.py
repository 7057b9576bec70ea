"""Scenarios from files, run in virtual time or on real processes."""
