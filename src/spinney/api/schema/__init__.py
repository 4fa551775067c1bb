"""Defaulting, validation and CRD manifests, generated from the types.

``structural`` turns a struct type into the schema of a CRD, ``crd`` the kinds into manifests; ``defaults`` fills in
what a user left out; each ``validate_*`` module returns the faults of one kind of object, or of one part of a
PodCliqueSet, as :class:`~spinney.api.field_error.FieldError` with paths.
"""
