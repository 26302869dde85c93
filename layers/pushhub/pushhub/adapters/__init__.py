"""The ports of the hub on AWS and HTTP: each module is one port on one service.

They turn SDK errors into domain errors (``Unavailable``, ``Conflict``) with the cause kept; nothing of an SDK shows in what they return.
Clients are made once per process and passed in; how often a client repeats a failed request is the client's setting.
"""
