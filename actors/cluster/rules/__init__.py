"""Pure: what is decided about a cluster. No clock, no randomness, no I/O: time and chance come in as data."""
