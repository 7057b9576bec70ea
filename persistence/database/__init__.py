"""Engines, files, locks and connections: everything between SQLAlchemy and the disk."""
