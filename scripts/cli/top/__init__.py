"""`rekindle top`: the live terminal view. Needs the extra `tui`."""
