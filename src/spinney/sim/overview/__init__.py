"""Gangs and queues of a cluster at a glance, and what has happened to them so far."""
