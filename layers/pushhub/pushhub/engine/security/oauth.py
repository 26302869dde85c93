"""Tokens of subscribers behind OAuth 2.0: asked for once in their lifetime, whoever needs them.

A token is kept sealed in a table that all execution environments share, and in the memory of each that has used it. Who
finds none claims the request for it there; the others wait for the result. A token server that fails is asked again
after 5 seconds, 10, 20 and so on up to 10 minutes, by one environment: its circuit. Meanwhile nothing is sent to the
subscriber, and the subscriber is not blamed. In the first minutes of an outage, messages wait for the circuit alone:
their tries are not used up, so a short outage does not delay them by a long wait of their retry policy.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.oauth import ANSWER_LIMIT, Token, TokenRefused, read_token, token_request
from pushhub.base.ports import PushRequest
from pushhub.engine.component import Component

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pushhub.base.oauth import Grant
    from pushhub.base.ports import Clock, Sender, Telemetry, Vault

TIMEOUT_S = 10.0
"""Seconds that a token server has to answer."""

FIRST_WAIT_MS, MOST_WAIT_MS = 5_000, 600_000
"""Time after which a token server that failed is asked again: the first time, and at most."""

SPARED_MS = 300_000
"""How long an outage of a token server costs messages no tries, milliseconds."""

USELESS_MS = 300_000
"""A subscriber that refuses a new token, too, has its tokens replaced at most once in this time."""

_POLL_S = 0.1
_CLAIM_MARGIN_MS = 5_000
_REMEMBERED = 1_000


class NoToken(Exception):
    """There is no token now, so nothing can be sent.

    Args:
        reason: Why, for the subscriber's owner.
        wait_ms: Milliseconds after which the token server is asked again.
        spares: Whether messages wait for that alone, whatever their retry policies say.
    """

    def __init__(self, reason: str, wait_ms: int, *, spares: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_ms = wait_ms
        self.spares = spares


@dataclass(frozen=True, slots=True)
class TokenOwner:
    """Whose token it is.

    Attributes:
        name: The subscriber, unique in the project.
    """

    project: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenState:
    """What all environments know of a subscriber's token. Times are epoch milliseconds.

    Attributes:
        revision: Of the grant that it was obtained by; another one's is not used.
        sealed: The token, encrypted; empty for none.
        usable_until: When another one is used.
        failures: How often the token server failed in a row.
        ask_at: When it may be asked again.
        reason: Why it gave no token.
        failing_since: When the first of these failures was; 0 for none.
        out_since: Since when it has been out of order; 0 if it is not.
        claimed_until: Until when another environment is asking.
        claim: Random text of the run that asks: no two claims are ever the same write.
        useless_until: Until when a refused token is not replaced, as the one before it was refused, too.
        version: Raised by each write; 0 if it was never stored.
    """

    owner: TokenOwner
    revision: str
    sealed: bytes = field(default=b"", repr=False)
    usable_until: int = 0
    failures: int = 0
    ask_at: int = 0
    reason: str = ""
    failing_since: int = 0
    out_since: int = 0
    claimed_until: int = 0
    claim: str = field(default="", repr=False)
    useless_until: int = 0
    version: int = 0

    def spares(self, now: int) -> bool:
        """Whether the token server has not been out of order for long."""
        return self.out_since > 0 and now - self.out_since < SPARED_MS


class AccessTokenStore(Protocol):
    """Where tokens are kept."""

    def token_state(self, owner: TokenOwner) -> TokenState | None:
        """What is stored, read consistently; None for nothing."""
        ...

    def token_states(self, owners: Sequence[TokenOwner]) -> list[TokenState]:
        """What is stored of many, in no order; may be seconds old."""
        ...

    def token_states_of(self, project_id: str) -> Iterator[TokenState]:
        """What is stored of all of a project, in no order; may be seconds old."""
        ...

    def save_token_state(self, state: TokenState) -> None:
        """Store, provided that the version is one higher than the stored one's.

        Raises:
            Conflict: It is not.
        """
        ...


class AccessTokens(Component):
    """Obtains tokens. Thread-safe."""

    store: AccessTokenStore  # Shared by all environments.
    sender: Sender  # Asks token servers, through the egress guard.
    vault: Vault  # Seals tokens.
    clock: Clock
    telemetry: Telemetry

    def __post_init__(self) -> None:
        self._known: OrderedDict[TokenOwner, tuple[str, Token]] = OrderedDict()
        self._refused: OrderedDict[TokenOwner, str] = OrderedDict()
        self._obtained: OrderedDict[TokenOwner, str] = OrderedDict()
        self._asking: set[TokenOwner] = set()
        self._lock = threading.Lock()

    def token(self, owner: TokenOwner, grant: Grant, *, allowed: Sequence[str], until: int) -> str:
        """A token that can be used now, and that the subscriber has not refused.

        Args:
            allowed: Hosts or networks behind the egress guard that the token URL may lead to.
            until: Epoch milliseconds until which the caller can wait.

        Raises:
            NoToken: There is none.
        """
        while True:
            known = self._remembered(owner, grant)
            if known is not None:
                return known
            with self._lock:
                if owner not in self._asking:
                    self._asking.add(owner)
                    break
            # Another thread of this environment is about it.
            if self.clock.now() + _POLL_S * 1000 >= until:
                raise NoToken("the token server has not answered yet", FIRST_WAIT_MS, spares=True)
            self.clock.sleep(_POLL_S)
        try:
            return self._shared(owner, grant, allowed, until)
        finally:
            with self._lock:
                self._asking.discard(owner)

    def refuse(self, owner: TokenOwner, token: str) -> None:
        """Note that the subscriber has refused a token: it is not used again, even if there is no time or no way to get
        another one now.
        """
        with self._lock:
            self._refused[owner] = token
            self._refused.move_to_end(owner)
            if len(self._refused) > _REMEMBERED:
                self._refused.popitem(last=False)

    def obtained(self, owner: TokenOwner, token: str) -> bool:
        """Whether this environment asked for a token itself, most recently. If not, another one did, perhaps long
        before the subscriber took back all that it had.
        """
        with self._lock:
            return self._obtained.get(owner) == token

    def _forget_refused(self, owner: TokenOwner) -> None:
        with self._lock:
            self._refused.pop(owner, None)

    def useless(self, owner: TokenOwner, grant: Grant) -> None:
        """Note that the subscriber refused a token that was new, so that its refusals do not become requests for
        tokens. The token is used meanwhile: the subscriber may take it again.
        """
        self._forget_refused(owner)
        state = self.store.token_state(owner)
        if state is not None and state.revision == grant.revision:
            until = self.clock.now() + USELESS_MS
            try:
                self.store.save_token_state(replace(state, useless_until=until, version=state.version + 1))
            except Conflict:
                # Whoever changed it meanwhile has a token of its own to try.
                return

    def _remembered(self, owner: TokenOwner, grant: Grant) -> str | None:
        with self._lock:
            revision, token = self._known.get(owner, ("", None))
            if token is None or revision != grant.revision or token.value == self._refused.get(owner):
                return None
            if token.usable_until <= self.clock.now():
                return None
            self._known.move_to_end(owner)
            return token.value

    def _remember(self, owner: TokenOwner, grant: Grant, token: Token) -> str:
        with self._lock:
            self._known[owner] = grant.revision, token
            self._known.move_to_end(owner)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return token.value

    def _shared(self, owner: TokenOwner, grant: Grant, allowed: Sequence[str], until: int) -> str:
        """The token that all environments share, asked for if there is none."""
        while True:
            now = self.clock.now()
            stored = self.store.token_state(owner)
            state = stored or TokenState(owner=owner, revision=grant.revision)
            if state.revision != grant.revision:
                state = TokenState(owner=owner, revision=grant.revision, version=state.version)
            if state.sealed and state.usable_until > now:
                value = self.vault.open(owner.project, state.sealed).decode()
                if value != self._refused.get(owner):
                    return self._remember(owner, grant, Token(value, state.usable_until))
                if state.useless_until > now:
                    self._forget_refused(owner)
                    raise NoToken("the receiver refuses new tokens, too", state.useless_until - now)
            if state.ask_at > now:
                raise NoToken(state.reason, state.ask_at - now, spares=state.spares(now))
            if state.claimed_until > now:
                if now + _POLL_S * 1000 >= until:
                    raise NoToken("the token server has not answered yet", FIRST_WAIT_MS, spares=True)
                self.clock.sleep(_POLL_S)
                continue
            if now + 1_000 > until:
                raise NoToken("there was no time left to ask the token server", 0)
            timeout_s = min(TIMEOUT_S, (until - now) / 1000)
            claimed = now + round(timeout_s * 1000) + _CLAIM_MARGIN_MS
            claim = secrets.token_hex(8)
            state = replace(state, claimed_until=claimed, claim=claim, version=state.version + 1)
            try:
                self.store.save_token_state(state)
            except Conflict:
                continue
            return self._asked(state, grant, allowed, timeout_s)

    def _asked(self, state: TokenState, grant: Grant, allowed: Sequence[str], timeout_s: float) -> str:
        """Ask the token server, and share the result."""
        headers, body = token_request(grant, self.clock.now())
        request = PushRequest(
            url=grant.token_url,
            body=body,
            headers=headers,
            timeout_s=timeout_s,
            answer_limit=ANSWER_LIMIT,
            allowed_targets=tuple(allowed),
        )
        self.telemetry.count("TokensRequested")
        try:
            answer = self.sender.send(request)
        except Unavailable:
            self._share(replace(state, claimed_until=0, version=state.version + 1))
            raise
        try:
            token = read_token(answer)
        except TokenRefused as error:
            raise self._failed(state, error) from None
        sealed = self.vault.seal(state.owner.project, token.value.encode())
        after = replace(
            state,
            sealed=sealed,
            usable_until=token.usable_until,
            failures=0,
            ask_at=0,
            reason="",
            failing_since=0,
            out_since=0,
            claimed_until=0,
            version=state.version + 1,
        )
        self._share(after)
        # A server may give the same token again.
        self._forget_refused(state.owner)
        with self._lock:
            self._obtained[state.owner] = token.value
            self._obtained.move_to_end(state.owner)
            if len(self._obtained) > _REMEMBERED:
                self._obtained.popitem(last=False)
        return self._remember(state.owner, grant, token)

    def _failed(self, state: TokenState, error: TokenRefused) -> NoToken:
        now = self.clock.now()
        wait_ms = max(error.wait_ms, min(MOST_WAIT_MS, FIRST_WAIT_MS << min(state.failures, 10)))
        after = replace(
            state,
            sealed=b"",
            usable_until=0,
            failures=state.failures + 1,
            ask_at=now + wait_ms,
            failing_since=state.failing_since or now,
            out_since=(state.out_since or now) if error.is_outage else 0,
            reason=error.reason,
            claimed_until=0,
            version=state.version + 1,
        )
        self.telemetry.count("TokensRefused")
        self.telemetry.event(
            "no_token", project=state.owner.project, subscriber=state.owner.name, reason=error.reason, wait_ms=wait_ms
        )
        self._share(after)
        return NoToken(error.reason, wait_ms, spares=after.spares(now))

    def _share(self, state: TokenState) -> None:
        """Store the result of a request. Without it, this environment goes by what it knows, and the claim ends."""
        try:
            self.store.save_token_state(state)
        except (Conflict, Unavailable) as error:
            self.telemetry.count("TokensUnshared")
            self.telemetry.event(
                "token_not_shared", project=state.owner.project, subscriber=state.owner.name, error=str(error)
            )
