"""Pure: answers of the supervisor as text for a terminal."""
