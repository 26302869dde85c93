"""A project whose subscribers are anywhere on the internet, behind servers that do whatever servers do; it is talked
through what came on the wire (:mod:`simulation.internet`).

There is no traffic: what all worlds send goes the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from simulation.promises.judgement import Violation
from simulation.promises.talks import wire_answers, wire_connections, wire_names
from simulation.worlds.world import World


class EgressWorld(World):
    """Nobody, until somebody talks."""

    name = "egress"

    def set_up(self) -> None:
        """Nobody is there."""

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """Nobody."""
        return {}

    def open(self) -> int:
        """Nothing is owed."""
        return 0

    def talk(self) -> None:
        """Single tries at servers of all kinds, seen from both ends."""
        talk = self._client("/3/projects/{project}", lambda _, token: {"authorization": f"OAuth {token}"})
        wire_answers.through(talk)
        wire_answers.again(talk)
        wire_names.through(talk)
        wire_connections.through(talk)

    def check(self) -> Iterator[Violation]:
        """What was promised is asked in the talk."""
        yield from self.judgement.total()


__all__ = ["EgressWorld"]
