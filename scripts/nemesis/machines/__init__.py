"""Attacks a real cluster: one network and process namespace for each machine, joined by a virtual switch."""
