"""Pure: whether a node is at fault for the deaths of its workers, and what follows."""
