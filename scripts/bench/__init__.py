"""How fast a killed worker is back: the floor and Rekindle, with the same worker and the same clock."""
