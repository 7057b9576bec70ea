"""What programs that act for a person may see and do: the tools of `rekindle mcp`."""
