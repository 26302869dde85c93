"""``sam validate``, ``sam build`` and ``sam deploy`` as on AWS, into the emulator,
with messages pushed through the result.
"""
