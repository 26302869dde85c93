"""What the unmodified Python clients of Svix see of a running hub.

Runs inside a client's environment, with nothing else installed.

``python -m tests.stack.webhooks.judge BASE_URL TOKEN OTHER_TOKEN PREFIX`` runs every check whose name begins so and
prints, as JSON, what failed by the check's name. A check is a function ``check_NN_...``; NN is its number in the list
that the protocol was built from. Those marked :func:`today` need the client of today; all others are made with the 1.x
generation too.
"""
