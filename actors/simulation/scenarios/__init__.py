"""Pure: what a scenario says, what a run recorded, and the rules that every run must keep."""
