"""The pod-at-a-time scheduler with extension points, the coscheduling plugin and the PodGroup controller."""
