"""The queues: how jobs get in, what is known of them, and what becomes of those of a dead worker.

Workers claim and finish by connections of their own; their statements are in `rekindle.worker.jobs`.
"""
