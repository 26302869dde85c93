"""The HTTP API of webhooks, ``/api/v1/...`` (Svix API v1).

How it is organized, for anyone adding a route:

* A module per resource holds its handlers and a tuple ``ROUTES``; ``api.py`` joins them, literal paths before those
  with parameters. ``ingest`` serves only ``posting.py`` (producers); ``control`` serves everything else.
* A handler is ``(use_cases, call) -> Response``. ``call`` (:class:`pushhub.webhooks.api.call.WebhooksCall`) knows the
  caller's project, the application it may act on and the names in the path, and reads bodies (``call.fields``) and
  queries (``call.query``).
* A route that an application's token may use has ``auth=Auth.PROJECT_OR_CAPABILITY``; one with ``Auth.PROJECT`` is
  reserved for the organization (403 to others).
* Refusals are raised: :class:`pushhub.webhooks.model.refusals.Unprocessable` for 422, ``Refused`` for another status
  and code, ``NotFound`` for 404.
* Lists are :func:`pushhub.webhooks.wire.page.page_view` of a :class:`pushhub.webhooks.model.page.Page`.
* ``Idempotency-Key`` is honoured for each POST by the API itself (``api.py``), except for messages, whose ids remember
  it.
"""
