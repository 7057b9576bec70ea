"""Pure: the health of one worker: its states, its readiness, and whether its work makes progress."""
