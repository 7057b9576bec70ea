"""Pure: what the health of workers must be, derived without the code of the supervisor."""
