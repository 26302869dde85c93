"""The other ends of WebSocket connections, through API Gateway's management API."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from pushhub.base.errors import Unavailable

if TYPE_CHECKING:
    from pushhub.base.ports import Clock


class ApiGatewaySockets:
    """Implements :class:`pushhub.notifications.ports.Sockets`.

    Args:
        client: Client of ``apigatewaymanagementapi`` for the WebSocket API's stage.
    """

    def __init__(self, client: Any, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    def send(self, connection_id: str, text: str) -> bool:
        data = text.encode("utf-8", "surrogatepass")
        return self._call("PostToConnection", self._client.post_to_connection, connection_id, Data=data) is not None

    def close(self, connection_id: str) -> None:
        self._call("DeleteConnection", self._client.delete_connection, connection_id)

    def active_at(self, connection_id: str) -> int | None:
        """An answer without a time only shows that the connection is open; that counts as active now."""
        answer = self._call("GetConnection", self._client.get_connection, connection_id)
        if answer is None:
            return None
        last: datetime | None = answer.get("LastActiveAt")
        return round(last.timestamp() * 1000) if last else self._clock.now()

    @staticmethod
    def _call(operation: str, method: Any, connection_id: str, **more: Any) -> dict[str, Any] | None:
        """The answer; None when the connection is gone."""
        try:
            answer: dict[str, Any] = method(ConnectionId=connection_id, **more)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == "GoneException":
                return None
            raise Unavailable(f"execute-api:{operation}") from error
        except BotoCoreError as error:
            raise Unavailable(f"execute-api:{operation}") from error
        return answer
