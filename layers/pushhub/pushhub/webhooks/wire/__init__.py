"""Webhooks on the wire: the JSON of the Svix API v1, and the requests made to endpoints.

What reads a body raises ``Unprocessable`` (422), naming the place, for what breaks a rule; what reads a query raises
``Refused`` (400) for a value of the wrong type.
"""
