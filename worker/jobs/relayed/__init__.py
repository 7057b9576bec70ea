"""The queue through the supervisor, for a worker that is not given the address of the database."""
