"""Alerts of projects: what they watch, looked at each minute, and whom they tell."""
