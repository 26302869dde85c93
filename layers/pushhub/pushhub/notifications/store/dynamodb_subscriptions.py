"""Subscriptions (publishing rules) on DynamoDB: keyed by what makes them unique,
and found by their id through a second item.
"""

from __future__ import annotations

from pushhub.base.errors import Conflict
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import TableStore, text
from pushhub.cloud.unreadable import readable
from pushhub.notifications.model.subscription import Context, Subscription
from pushhub.notifications.store._items import (
    decode_subscription,
    encode_subscription,
    subscription_id_key,
    subscription_key,
    subscription_prefix,
)


class DynamoDBSubscriptionStore(TableStore):
    """Implements :class:`pushhub.notifications.ports.SubscriptionStore`."""

    def create(self, rule: Subscription) -> None:
        """The id's item is written first: without the subscription it has no effect."""
        item = encode_subscription(rule)
        self._table.put(subscription_id_key(rule.project, rule.subscription_id) | {"key": item["sk"]})
        try:
            self._table.put(item, ConditionExpression="attribute_not_exists(pk)")
        except ConditionRefused as refused:
            if refused.stored == item:
                return
            self._table.delete(subscription_id_key(rule.project, rule.subscription_id))
            raise Conflict("the subscription exists") from refused

    def subscription(self, project_id: str, subscription_id: str) -> Subscription | None:
        found = self._table.get(subscription_id_key(project_id, subscription_id))
        item = self._table.get({"pk": text(f"{project_id}#R"), "sk": found["key"]}) if found else None
        if item is None or item["id"]["S"] != subscription_id:
            return None
        return decode_subscription(item)

    def subscriptions(self, project_id: str) -> list[Subscription]:
        return sorted(self._under(project_id, ""), key=lambda each: int(each.subscription_id))

    def concerning(self, project_id: str, source: str) -> list[Subscription]:
        prefixes = (
            subscription_prefix(Context.MANAGED_OBJECT, source),
            subscription_prefix(Context.TENANT, ""),
        )
        rules = [rule for prefix in prefixes for rule in self._under(project_id, prefix)]
        return sorted(rules, key=lambda each: int(each.subscription_id))

    def delete(self, rule: Subscription) -> bool:
        try:
            gone = self._table.delete(
                subscription_key(rule),
                ConditionExpression="id = :id",
                ExpressionAttributeValues={":id": text(rule.subscription_id)},
            )
        except ConditionRefused:
            gone = None
        self._table.delete(subscription_id_key(rule.project, rule.subscription_id))
        return gone is not None

    def _under(self, project_id: str, prefix: str) -> list[Subscription]:
        condition = "pk = :rules" + (" AND begins_with(sk, :prefix)" if prefix else "")
        values = {":rules": text(f"{project_id}#R")} | ({":prefix": text(prefix)} if prefix else {})
        items = self._table.items(
            KeyConditionExpression=condition, ExpressionAttributeValues=values, ConsistentRead=True
        )
        return [*readable(items, decode_subscription)]
