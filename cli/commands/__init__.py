"""The commands, a module for each of them or for a few that belong together."""
