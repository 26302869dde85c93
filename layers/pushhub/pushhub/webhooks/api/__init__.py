"""The HTTP API of webhooks, ``/api/v1/...`` (Svix API v1).

How it is laid out, for whoever adds a route:

* A module per resource holds its handlers and a tuple ``ROUTES``; ``api.py`` joins them, literal paths before those
  with names in their place. ``posting.py`` alone is what ``ingest`` serves (producers); everything else is served by
  ``control``.
* A handler is ``(use_cases, call) -> Response``. ``call`` (:class:`pushhub.webhooks.api.call.WebhooksCall`) knows the
  caller's project, the application it may act on, the path's names, and reads bodies (``call.body()``) and queries
  (``call.query``).
* A route that an application's token may use has ``auth=Auth.PROJECT_OR_CAPABILITY``; one of ``Auth.PROJECT`` is the
  organization's (403 to others).
* Refusals are raised: :class:`pushhub.webhooks.model.refusals.Unprocessable` for 422, ``Refused`` for a status and code
  of one's own, ``NotFound`` for 404.
* Lists are :func:`pushhub.webhooks.wire.page.page_view` of a :class:`pushhub.webhooks.model.page.Page`.
* ``Idempotency-Key`` is honoured for each POST by the API itself (``api.py``), except for messages, whose ids remember
  it.
"""
