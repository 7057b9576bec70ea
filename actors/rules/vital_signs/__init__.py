"""Pure: what tells whether a worker is ready and alive, one sign in each module."""
