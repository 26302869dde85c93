"""Wire formats of Notifications 2.0: frames, tokens, REST documents. Pure functions only."""
