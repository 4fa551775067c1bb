"""What users write is defaulted, validated and guarded before it is stored: the rules, and the webhooks that ask."""
