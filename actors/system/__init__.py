"""What a host holds: the actors put together behind ordinary typed methods."""
