"""Listening sockets that the supervisor keeps open for its workers."""
