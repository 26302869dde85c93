"""Where webhooks keep their settings and logs."""
