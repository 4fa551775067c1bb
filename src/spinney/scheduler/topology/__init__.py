"""Topologies: levels of node labels, the tree of domains they span, and dividing nodes by it."""
