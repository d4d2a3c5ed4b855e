"""Helpers shared by the end-to-end tests. The `run` scripts put the folder `e2e` on PYTHONPATH."""
