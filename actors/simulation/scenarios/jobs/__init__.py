"""Jobs in a scenario: moves on queues, and what happens to jobs."""
