"""The process of `rekindle run`: start and stop, signals, log, gateways."""
