"""How a process is started."""
