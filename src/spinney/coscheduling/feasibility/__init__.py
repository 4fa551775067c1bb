"""What is possible on a snapshot: where a pod fits, whom it could replace, whether a whole group fits."""
