"""What the protocols promise, as models that know no line of the hub: from what was asked and answered, and what was
received, they derive what each receiver may and must see.
"""
