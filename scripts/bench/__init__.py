"""How fast a killed worker restarts: the floor and Rekindle, with the same worker and the same clock."""
