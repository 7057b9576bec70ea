"""Pure: one module for each table of the configuration file."""
