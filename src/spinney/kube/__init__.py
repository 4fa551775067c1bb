"""Talking to an API server: client, watch caches with indexes, work queue, controllers, leader lease, events.

A :class:`~spinney.kube.client.Client` speaks over a :class:`~spinney.kube.transport.Transport`: HTTP to a real API
server (:func:`~spinney.kube.config.load_kubeconfig`, :func:`~spinney.kube.config.in_cluster`), or a function call to
an embedded one. Everything above it is the same in production, in a test and on virtual time.
"""
