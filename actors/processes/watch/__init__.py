"""How a running process is watched: exits, frames, output."""
