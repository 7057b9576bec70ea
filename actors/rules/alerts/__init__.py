"""Pure: alerts as episodes."""
