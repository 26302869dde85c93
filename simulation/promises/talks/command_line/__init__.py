"""The command line, talked through: what people type, what is printed, and that a dry run changes nothing.

Sources: docs/cli.md, and the pages of what the commands are about.
"""

from simulation.promises.talks.command_line.archive_commands import archives, recorded
from simulation.promises.talks.command_line.key_commands import keys_changed
from simulation.promises.talks.command_line.moving_commands import imported, moved
from simulation.promises.talks.command_line.operator_commands import operators, signing_secret
from simulation.promises.talks.command_line.queue_commands import queues
from simulation.promises.talks.command_line.recovery_commands import recovered
from simulation.promises.talks.command_line.sender_commands import queues_taken_over, taken_over
from simulation.promises.talks.command_line.store_commands import stores
from simulation.promises.talks.command_line.topic_commands import topics
from simulation.promises.talks.command_line.webhook_commands import webhooks

__all__ = [
    "archives",
    "imported",
    "keys_changed",
    "moved",
    "operators",
    "queues",
    "queues_taken_over",
    "recorded",
    "recovered",
    "signing_secret",
    "stores",
    "taken_over",
    "topics",
    "webhooks",
]
