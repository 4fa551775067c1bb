"""The plugin contract: what a plugin is, what it is shown and what it may register.

Read :mod:`.plugin` and :mod:`.session` first, then :mod:`.registration` with :mod:`.extension_points` (what can be
registered), :mod:`.tasks`, :mod:`.jobs` and :mod:`.nodes` (what plugins look at), :mod:`.events`, and
:mod:`.statement` for trying placements. The rest is kept for them.
"""
