"""Pure: one table of the configuration file a module."""
