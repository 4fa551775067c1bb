"""The story of ``spinney demo``: its cluster, its workloads, its screen."""
