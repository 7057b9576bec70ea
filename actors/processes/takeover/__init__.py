"""Processes that the former program of this process started: how they are handed over and taken over."""
