"""Which pods and replicas are replaced, and when: rolling updates and gang termination."""
