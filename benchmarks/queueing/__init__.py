"""What suspended workloads cost that wait in queues."""
