"""Wire shapes: what clients send and are sent, read into and rendered from :mod:`pushhub.domain`. Pure functions only."""
