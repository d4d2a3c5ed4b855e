"""Helpers shared by the end-to-end tests. The `run` scripts put the folder above on PYTHONPATH."""
