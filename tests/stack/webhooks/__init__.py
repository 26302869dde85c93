"""The webhooks protocol judged by Svix's own clients, unmodified: the whole hub in one process, over HTTP,
with AWS's services as fakes.
"""
