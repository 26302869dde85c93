"""AWS as the stores see it: settings, clients, calls with their errors told apart, logs and metrics."""
