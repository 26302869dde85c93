"""Puts everything together: settings, clients, services, logs. Function handlers import only from here."""
