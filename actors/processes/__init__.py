"""The real process table: starts, watches, signals and reaps the workers' processes."""
