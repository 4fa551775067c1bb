"""Grouping cases: a pod, its owners and what else the API server holds, and what gang the pod must end up in.

The format is that of KAI's pod grouper tests as data. Each case has a ``check``: what is asked. :mod:`.answering` has
our rules answer it, :mod:`.comparing` finds the differences, and :mod:`.deviations` says which of them are meant, and
which questions have no answer here. A case that is answered differently on purpose has not passed.
"""
