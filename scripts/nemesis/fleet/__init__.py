"""The twenty workers: the file that declares them, and what runs inside of them."""
