"""One HTTP application on one thread: connections, blocking calls, event streams, JSON."""
