"""The log files of workers, read back without a supervisor. The standard library only."""
