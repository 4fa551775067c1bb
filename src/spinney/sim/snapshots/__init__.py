"""A cluster at one moment, as a value and as a file, and what a workload file comes to in it."""
