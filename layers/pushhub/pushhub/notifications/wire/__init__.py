"""Wire formats of Notifications 2.0: frames, tokens, REST documents. Pure functions only.

Whatever reads a request raises ``Invalid``, with the text that the client gets.
"""
