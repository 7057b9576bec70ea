"""Warm processes: they have imported an application, and fork its workers."""
