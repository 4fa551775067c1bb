"""What is special about pods: defaults, quality of service, immutable fields, binding and eviction."""
