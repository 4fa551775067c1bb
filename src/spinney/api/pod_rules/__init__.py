"""Kubernetes' rules about pods, for whoever checks or reads one."""
