"""What the objects are: one module per API group, and the values they share (metadata, quantities, selectors)."""
