"""Talks: what a client asks for in good weather, step by step, and what the protocol's documents say is answered.

They ask for what is just allowed and just not, for what must be refused, and for everything that can be made, changed,
listed and looked up.
"""
