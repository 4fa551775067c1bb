"""Suspended workloads wait in queues without pods, until the scheduler has room for their gangs."""
