"""Control groups (version 2): one for each process of a worker that asks for it."""
