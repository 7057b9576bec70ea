"""Pure: the cluster as operators see it."""
