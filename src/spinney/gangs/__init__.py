"""Groups of pods: the tree of minimums and constraints, the one ``satisfied`` predicate, and where groups come from."""
