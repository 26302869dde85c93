"""The whole hub in a simulator: the real functions on a model of AWS in memory,
a virtual clock and one seed (``docs/simulation.md``).
"""
