"""The Supervisor and the parts that run inside it."""
