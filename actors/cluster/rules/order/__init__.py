"""Pure: what is placed together, and what before what."""
