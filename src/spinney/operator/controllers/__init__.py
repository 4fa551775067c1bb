"""The controllers, one per kind, and what they share while they run."""
