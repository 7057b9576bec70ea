"""The worker's side of the executor: receives tasks and sends their outcomes."""
