"""Commands that show why something happened; they change nothing."""
