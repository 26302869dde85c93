"""The emulator's state on disk: snapshots, what has changed since, and whether there is room for more."""
