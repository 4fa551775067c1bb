"""Plugins in a file that is not installed, and what went wrong in them."""
