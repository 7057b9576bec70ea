"""How a system puts jobs into queues."""
