"""What is known about the cluster, kept current by watch events, and its snapshots."""
