"""The dashboard: a read-only page over one cluster, with a JSON API and server-sent events.

A :class:`~spinney.dashboard.view.View` follows the cluster with one viewer's credentials and keeps a
:class:`~spinney.dashboard.board.Board` of rows. What changes goes to a :class:`~spinney.dashboard.feed.Feed`, once for
all who look. :mod:`~spinney.dashboard.serving` answers HTTP; the page it serves is built from ``web/``.
"""
