"""Kubernetes' rules for pods: faults (:mod:`~spinney.api.pod_rules.pods`), defaults, quality of service.

Faults are neutral: the embedded server renders them as causes of a ``Status``, the operator in its refusals.
"""
