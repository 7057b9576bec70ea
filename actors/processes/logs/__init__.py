"""The log files of workers: written, rotated and compressed on threads of their own."""
