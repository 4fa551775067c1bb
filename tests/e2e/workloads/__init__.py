"""The workloads of Grove's scenarios, rebuilt from its tables."""
