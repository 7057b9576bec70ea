"""The edges: one way in from the outside a file or folder.

Nothing here is loaded by `import rekindle.actors`; a host imports the gateway that it wants.
A gateway turns requests into calls of an `Operator` and its answers into what the outside reads.
"""
