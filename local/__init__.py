"""Pushhub on one machine: an emulator of AWS on loopback, the real template deployed into it,
and one base URL in front.
"""
