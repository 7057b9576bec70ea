"""`rekindle upgrade`: the supervisor checks another installation, then executes it in its own process."""
