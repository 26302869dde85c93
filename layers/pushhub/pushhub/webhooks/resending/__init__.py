"""Sending once more: one message, or all of a time, in the background."""
