"""How a new version takes over: sockets that stay open, the drain before a stop, releases."""
