"""Claims on queues whose jobs are limited."""
