"""Pictures of a cluster on a terminal."""
