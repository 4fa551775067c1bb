"""Figures of the Kubernetes runtime: memory, watch events, reconciles and the lease."""
