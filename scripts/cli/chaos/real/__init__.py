"""Scenarios on real processes: a supervisor that can be killed, and scripted workers."""
