"""Pure: how the tables of workers become specs: groups, layers of settings, and their order."""
