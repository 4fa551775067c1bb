"""Objects that the operator keeps beside PodCliques, PodGangs and pods, and names that others have taken."""
