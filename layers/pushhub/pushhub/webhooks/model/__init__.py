"""Rules of webhooks: ids, secrets, who gets a message. Pure.

Unless a class says otherwise, times are epoch milliseconds, ``project`` is the owner, and ``version`` is raised by each
write and guards concurrent changes.
"""
