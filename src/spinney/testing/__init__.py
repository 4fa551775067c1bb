"""Builders and contract suites for authors of backends and plugins."""
