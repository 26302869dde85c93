"""The whole hub in a simulator: the real functions on an in-memory model of AWS, with a virtual clock and a single seed
(``docs/simulation.md``).
"""
