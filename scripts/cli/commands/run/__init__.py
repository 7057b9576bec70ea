"""Commands that run a supervisor, or end it."""
