"""A supervisor that is a node of a cluster. Loaded with `[cluster]` only."""
