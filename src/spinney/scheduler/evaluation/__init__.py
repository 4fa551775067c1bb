"""Asking plugins: which nodes suit a pod, who comes first, what is allowed."""
