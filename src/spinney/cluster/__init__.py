"""The cluster in columns: node table, resource vectors, label and taint masks, ledgers, filters and scores."""
