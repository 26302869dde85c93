"""Push queues: where they push to, and their messages: shown, deleted, acknowledged, pushed once more."""
