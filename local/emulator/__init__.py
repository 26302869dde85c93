"""The emulator of AWS: started and stopped, and what is changed in its process to do as AWS does.

All but :mod:`local.emulator.lifecycle` runs there (:mod:`local.apart`).
"""
