"""What each route does, and the shape of its result."""
