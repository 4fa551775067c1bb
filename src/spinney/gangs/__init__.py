"""Groups of pods: the tree of minimums and constraints, the ``is_satisfied`` predicate, and where groups come from."""
