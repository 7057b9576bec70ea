"""Gateways between the supervisor and the outside: control socket, HTTP, NATS, metrics, alert sinks.

`import rekindle.actors` loads none of them; a host imports the gateway that it needs.
A gateway turns requests into calls of an `Operator`, and its results into responses.
"""
