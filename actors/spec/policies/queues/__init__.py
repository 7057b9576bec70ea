"""What a host declares about queues."""
