"""What a supervisor leaves to the program that replaces it in the same process; see `estate`."""

from .document import FORMAT, HandOver, HandOverError
from .estate import Estate, Inheritance

__all__ = ["FORMAT", "Estate", "HandOver", "HandOverError", "Inheritance"]
