"""The process of `rekindle run`: its life, its log, its gateways."""
