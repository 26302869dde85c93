"""Basics for every package: errors, ids, times, verdicts. Imports nothing else of ours."""
