"""Tokens of subscribers, and notes of certificates' ends, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple

from pushhub.base.errors import Conflict
from pushhub.engine.ends import EndNote
from pushhub.engine.security.oauth import TokenOwner, TokenState


class FakeTokens:
    """Implements :class:`pushhub.engine.security.oauth.AccessTokenStore`.

    Attributes:
        states: What is stored, by owner.
    """

    def __init__(self) -> None:
        self.states: dict[TokenOwner, TokenState] = {}

    def token_state(self, owner: TokenOwner) -> TokenState | None:
        return self.states.get(owner)

    def token_states(self, owners: Sequence[TokenOwner]) -> list[TokenState]:
        return [self.states[each] for each in dict.fromkeys(owners) if each in self.states]

    def token_states_of(self, project_id: str) -> Iterator[TokenState]:
        return iter([each for owner, each in self.states.items() if owner.project == project_id])

    def save_token_state(self, state: TokenState) -> None:
        stored = self.states.get(state.owner)
        if stored != state and (stored.version if stored else 0) != state.version - 1:
            raise Conflict("it has another version")
        self.states[state.owner] = state


class FakeEndNotes:
    """Implements :class:`pushhub.engine.ends.EndNotes`.

    Attributes:
        notes: All.
    """

    def __init__(self) -> None:
        self.notes: set[EndNote] = set()

    def note_end(self, note: EndNote) -> None:
        self.notes.add(note)

    def due_ends(self, now: int) -> Iterator[EndNote]:
        yield from sorted((each for each in self.notes if each.at <= now), key=astuple)

    def forget_end(self, note: EndNote) -> None:
        self.notes.discard(note)
