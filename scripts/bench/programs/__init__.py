"""The programs that are measured: the floor and the worker, in C and in Python."""
