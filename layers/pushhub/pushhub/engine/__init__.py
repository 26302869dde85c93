"""Accepts messages and delivers each to its subscribers until it is settled. Knows no protocol."""
