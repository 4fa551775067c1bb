"""Behaviour cases: small clusters as data, and what a scheduler must do with them.

A case describes nodes, queues and jobs, which actions run for how many rounds, and what must have happened afterwards.
:mod:`.reading` turns files into :mod:`.format` structs, :mod:`.objects` a case into what a scheduler watches,
:mod:`.running` runs its sessions, folds each one's outcome into the next and prints the differences that
:mod:`.comparing` finds.
"""
