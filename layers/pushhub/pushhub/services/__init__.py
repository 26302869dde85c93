"""The use cases, written against :mod:`pushhub.ports` only."""
