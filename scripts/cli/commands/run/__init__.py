"""Commands that run a supervisor or stop it."""
