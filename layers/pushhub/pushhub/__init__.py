"""Pushhub: the code that every function shares (the Lambda layer ``pushhub``).

One package for each protocol (:mod:`pushhub.ironmq`, :mod:`pushhub.hub`, :mod:`pushhub.notifications`,
:mod:`pushhub.webhooks`) on an engine that knows none of them (:mod:`pushhub.engine`); :mod:`pushhub.runtime` puts them
together for the functions. What all of them stand on is in :mod:`pushhub.base`, :mod:`pushhub.cloud`,
:mod:`pushhub.egress` and :mod:`pushhub.web`. ``tests/architecture`` enforces the import rules.
"""
