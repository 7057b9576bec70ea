"""TOML as text: files read, tables written, the lines of keys."""
