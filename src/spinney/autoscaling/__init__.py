"""Autoscalers that are asked for the nodes of whole gangs."""
