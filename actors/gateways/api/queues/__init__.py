"""The routes about whole queues."""
