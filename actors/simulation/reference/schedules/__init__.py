"""Pure: what becomes of the due times of scheduled workers, derived without the code of the supervisor."""
