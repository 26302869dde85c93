"""What the handlers of the hub's API call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # A function that only accepts messages does not load the rest.
    from pushhub.engine.ports import ProjectDirectory
    from pushhub.hub.health import ServiceHealths
    from pushhub.hub.intake import HubIntake
    from pushhub.hub.integrations import HubIntegrations
    from pushhub.hub.messages import HubMessages
    from pushhub.hub.notices import HubNotices
    from pushhub.hub.ports import ShownSettings
    from pushhub.hub.settings import HubSettingsOfStore


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPosting:
    """What producers need."""

    intake: HubIntake


@dataclass(frozen=True, slots=True, kw_only=True)
class HubUseCases(HubPosting):
    """The hub's use cases, and the data that is shown directly."""

    config: ProjectDirectory
    settings: ShownSettings
    notices: HubNotices
    of_store: HubSettingsOfStore
    integrations: HubIntegrations
    messages: HubMessages
    healths: ServiceHealths
