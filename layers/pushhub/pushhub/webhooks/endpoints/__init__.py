"""Endpoints: what their owners set, their secrets and signatures, their consent, their health."""
