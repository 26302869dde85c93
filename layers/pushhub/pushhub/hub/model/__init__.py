"""The hub's rules as plain data and pure functions.

Unless a class says otherwise, times are epoch milliseconds, ``project`` is the owner, and ``version`` is raised by each
write and guards concurrent changes.
"""
