"""What would let a waiting gang start: changes, each tried on the snapshot before it is said.

:func:`remedies` knows a number of *levers* (uncordon nodes, raise a limit, relax a level, end other workloads, add
nodes, ...). Each is pulled on a copy of the snapshot, and the production schedulers then decide. Only what lets the
gang start is returned, as small as it was found to be, with its price. Where no lever is enough alone, those that are
enough together are returned as the steps of one remedy.
"""
