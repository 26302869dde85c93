"""IronMQ's shapes: what clients send and are sent. Pure functions only.

Whatever reads a request raises ``Invalid``, with the text that the client gets.
"""
