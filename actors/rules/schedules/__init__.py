"""Pure: when a scheduled worker runs, and what is recorded of every time at which it is due."""
