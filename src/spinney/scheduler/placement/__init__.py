"""Placing tasks on nodes: judging and ranking nodes, sharing devices, filling many nodes in one pass."""
