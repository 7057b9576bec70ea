"""The API of the control socket, HTTP and NATS: one table of routes and the handlers behind it."""
