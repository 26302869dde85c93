"""Measurements, each as a ratio against a baseline in the same run. Never part of the tests."""
