"""Pushhub: the code that every function shares (the Lambda layer ``pushhub``).

Read it from the inside out: :mod:`pushhub.domain` decides, :mod:`pushhub.dialects` speaks the wire
protocols, :mod:`pushhub.ports` names what the outside must offer, :mod:`pushhub.services` are the use cases,
:mod:`pushhub.adapters` reach AWS and HTTP, :mod:`pushhub.runtime` joins them. ``tests/architecture``
enforces the import rules.
"""
