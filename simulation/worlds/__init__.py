"""What lives in a simulated account: tenants, their producers, endpoints and consumers,
and the promises made to them.
"""
