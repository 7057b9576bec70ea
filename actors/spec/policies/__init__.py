"""Pure: the policies that a worker or a system lives under, one module each."""
