"""Where everything is joined: settings, clients, services, logs. Function handlers import from here only."""
