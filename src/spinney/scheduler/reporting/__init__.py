"""What the scheduler writes to the status of gangs, groups and queues."""
