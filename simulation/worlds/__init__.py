"""The inhabitants of a simulated account: tenants, their producers, endpoints and consumers, and the promises made to
them.
"""
