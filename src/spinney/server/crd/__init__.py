"""Custom resources: kinds that are defined while the server runs."""
