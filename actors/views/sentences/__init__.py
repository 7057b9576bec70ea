"""Pure: what events say, by the part of the system that they are about."""
