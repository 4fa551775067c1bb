"""Talking to an API server: client, watch caches with indexes, work queue, controllers, leader lease, events."""
