"""What happens to an object between the request and the store: defaults by policy, checks, webhooks."""
