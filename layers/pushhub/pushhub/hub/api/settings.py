"""Hub API: mappings, schedulers and parameters, which owners create, show, change and delete alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pushhub.hub.api.answers import NOTHING, listed
from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.wire.fields import CheckedFields
from pushhub.hub.wire.mapping import mapping_view, wanted_mapping
from pushhub.hub.wire.objects import read_parameter, read_scheduler
from pushhub.hub.wire.views import parameter_view, scheduler_view
from pushhub.web.api import Body, Route
from pushhub.web.health import health_view
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.hub.api.use_cases import HubUseCases
    from pushhub.hub.model.mapping import ServiceMapping
    from pushhub.hub.model.parameters import Parameter
    from pushhub.hub.model.schedule import Scheduler

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsResource(Generic[T]):
    """A kind of settings.

    Attributes:
        noun: What it is called.
        stored: Lists a store's.
        show: Finds one by its id.
        make: Makes one of a store's from its fields.
        change: Changes one of a store's.
        delete: Removes one by its id.
        view: Renders one of a store's.
        exact: Whether numbers in it are kept as they were written.
        besides: What is told of some of a store's besides, each in their order.
    """

    noun: str
    stored: Callable[[HubUseCases], Callable[[str], Iterable[T]]]
    show: Callable[[HubUseCases], Callable[[str, str], T]]
    make: Callable[[HubUseCases, str, CheckedFields], T]
    change: Callable[[HubUseCases, str, CheckedFields, T], T]
    delete: Callable[[HubUseCases], Callable[[str, str], None]]
    view: Callable[[T, str], dict[str, Any]]
    exact: bool = False
    besides: Callable[[HubUseCases, str, Sequence[T]], Iterable[dict[str, Any]]] = lambda _, __, found: (
        [{}] * len(found)
    )

    def list(self, hub: HubUseCases, call: HubCall) -> Response:
        """All of the store."""
        return listed([*self._shown(hub, call.store, [*self.stored(hub)(call.store)])])

    def _show(self, hub: HubUseCases, call: HubCall) -> Response:
        (shown,) = self._shown(hub, call.store, [self.show(hub)(call.store, call.id)])
        return Response(status=200, body=shown)

    def _shown(self, hub: HubUseCases, store: str, found: Sequence[T]) -> Sequence[dict[str, Any]]:
        besides = self.besides(hub, store, found)
        return [self.view(each, store) | more for each, more in zip(found, besides, strict=True)]

    def _make(self, hub: HubUseCases, call: HubCall) -> Response:
        return self._one(self.make(hub, call.store, self._fields(call)), call, status=201)

    def _change(self, hub: HubUseCases, call: HubCall) -> Response:
        found, fields = call.id, self._fields(call)
        before = self.show(hub)(call.store, found)
        return self._one(self.change(hub, call.store, fields, before), call)

    def _fields(self, call: HubCall) -> CheckedFields:
        return CheckedFields(call.wrapped(self.noun, exact=self.exact))

    def _delete(self, hub: HubUseCases, call: HubCall) -> Response:
        self.delete(hub)(call.store, call.id)
        return NOTHING

    def _one(self, value: T, call: HubCall, status: int = 200) -> Response:
        return Response(status=status, body=self.view(value, call.store))

    @property
    def routes(self) -> Iterable[Route[HubUseCases, HubCall]]:
        """Its routes."""
        several, body = f"{STORE}/{self.noun}s", Body.JSON_OR_FORM
        one, a_noun = several + "/{id}", f"a {self.noun}"
        yield Route("GET", several, self.list, name=f"hub.list_{self.noun}s", summary=f"List {self.noun}s")
        yield Route(
            "POST",
            several,
            self._make,
            name=f"hub.make_{self.noun}",
            summary=f"Create {a_noun}",
            body=body,
            status=201,
        )
        yield Route("GET", one, self._show, name=f"hub.show_{self.noun}", summary=f"Show {a_noun}")
        yield Route("PUT", one, self._change, name=f"hub.change_{self.noun}", summary=f"Change {a_noun}", body=body)
        yield Route("DELETE", one, self._delete, name=f"hub.delete_{self.noun}", summary=f"Delete {a_noun}")


def _put_mapping(hub: HubUseCases, store: str, fields: CheckedFields, before: ServiceMapping) -> ServiceMapping:
    return hub.of_store.put_mapping(store, wanted_mapping(fields, before))


def _health(hub: HubUseCases, store: str, mappings: Sequence[ServiceMapping]) -> Iterable[dict[str, Any]]:
    return ({"health": health_view(each)} for each in hub.healths.of(store, mappings))


def _put_scheduler(hub: HubUseCases, fields: CheckedFields, before: Scheduler) -> Scheduler:
    return hub.of_store.put_scheduler(read_scheduler(fields, before), before)


def _put_parameter(hub: HubUseCases, store: str, fields: CheckedFields, before: Parameter | None) -> Parameter:
    parameter = read_parameter(fields, before, store, hub.settings.parameters)
    return hub.of_store.put_parameter(parameter, keep_type=not fields.raw("data_type"))


MAPPINGS = SettingsResource(
    noun="mapping",
    stored=lambda hub: hub.settings.mappings,
    show=lambda hub: hub.of_store.mapping,
    make=lambda hub, store, fields: _put_mapping(hub, store, fields, hub.of_store.new_mapping()),
    change=_put_mapping,
    delete=lambda hub: hub.of_store.delete_mapping,
    view=mapping_view,
    besides=_health,
)
SCHEDULERS = SettingsResource(
    noun="scheduler",
    stored=lambda hub: hub.settings.schedulers,
    show=lambda hub: hub.of_store.scheduler,
    make=lambda hub, store, fields: _put_scheduler(hub, fields, hub.of_store.new_scheduler(store)),
    change=lambda hub, _, fields, before: _put_scheduler(hub, fields, before),
    delete=lambda hub: hub.of_store.delete_scheduler,
    view=lambda scheduler, _: scheduler_view(scheduler),
)
PARAMETERS = SettingsResource(
    noun="parameter",
    stored=lambda hub: hub.settings.parameters,
    show=lambda hub: hub.of_store.parameter,
    make=lambda hub, store, fields: _put_parameter(hub, store, fields, None),
    change=_put_parameter,
    delete=lambda hub: hub.of_store.delete_parameter,
    view=lambda parameter, _: parameter_view(parameter),
    exact=True,
)
ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (*MAPPINGS.routes, *SCHEDULERS.routes, *PARAMETERS.routes)
