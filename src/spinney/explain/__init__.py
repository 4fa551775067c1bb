"""Reasons as data, and their rendering as condition, event, text and JSON."""
