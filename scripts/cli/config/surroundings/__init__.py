"""What surrounds a worker's process: placeholders in its settings, and files of environment variables."""
