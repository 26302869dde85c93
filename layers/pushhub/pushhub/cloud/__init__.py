"""AWS basics for the stores: settings, clients, calls with classified errors, logs and metrics."""
