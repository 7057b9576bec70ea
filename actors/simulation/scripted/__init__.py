"""Processes that follow a script: what they send, when they die, which jobs they take."""
