"""The command line: the one place that owns the process, its signals and its terminal."""
