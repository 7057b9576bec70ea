"""What the process of `rekindle run` asks of the operating system: signals, locks, memory, systemd."""
