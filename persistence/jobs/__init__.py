"""The job queues: enqueueing, reading, and the release of dead workers' claims.

Workers claim and finish jobs over connections of their own, with the statements in `rekindle.worker.jobs`.
"""
