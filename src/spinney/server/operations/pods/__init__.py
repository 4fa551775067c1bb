"""What only pods offer: binding, eviction within budgets, logs."""
