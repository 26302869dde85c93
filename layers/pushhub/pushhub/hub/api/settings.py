"""Hub API: mappings, schedulers and parameters, which owners create, show, change and delete alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pushhub.hub.api.answers import NOTHING, listed
from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.wire.mapping import mapping_view
from pushhub.hub.wire.views import parameter_view, scheduler_view
from pushhub.web.api import Body, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.hub.api.use_cases import HubUseCases

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T]):
    """A kind of settings.

    Attributes:
        noun: What it is called.
        stored: Lists a store's.
        show: Finds one by its id.
        make: Makes one from its fields.
        change: Changes one by its id.
        delete: Removes one by its id.
        view: Renders one of a store's.
    """

    noun: str
    stored: Callable[[HubUseCases], Callable[[str], Iterable[T]]]
    show: Callable[[HubUseCases], Callable[[str, str], T]]
    make: Callable[[HubUseCases], Callable[[str, Mapping[str, Any]], T]]
    change: Callable[[HubUseCases], Callable[[str, str, Mapping[str, Any]], T]]
    delete: Callable[[HubUseCases], Callable[[str, str], None]]
    view: Callable[[T, str], dict[str, Any]]

    def list(self, hub: HubUseCases, call: HubCall) -> Response:
        """All of the store."""
        return listed([self.view(each, call.store) for each in self.stored(hub)(call.store)])

    def _show(self, hub: HubUseCases, call: HubCall) -> Response:
        return self._one(self.show(hub)(call.store, call.id), call)

    def _make(self, hub: HubUseCases, call: HubCall) -> Response:
        return self._one(self.make(hub)(call.store, call.wrapped(self.noun)), call, status=201)

    def _change(self, hub: HubUseCases, call: HubCall) -> Response:
        return self._one(self.change(hub)(call.store, call.id, call.wrapped(self.noun)), call)

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


MAPPINGS = Kind(
    noun="mapping",
    stored=lambda hub: hub.settings.mappings,
    show=lambda hub: hub.of_store.mapping,
    make=lambda hub: hub.of_store.make_mapping,
    change=lambda hub: hub.of_store.change_mapping,
    delete=lambda hub: hub.of_store.delete_mapping,
    view=mapping_view,
)
SCHEDULERS = Kind(
    noun="scheduler",
    stored=lambda hub: hub.settings.schedulers,
    show=lambda hub: hub.of_store.scheduler,
    make=lambda hub: hub.of_store.make_scheduler,
    change=lambda hub: hub.of_store.change_scheduler,
    delete=lambda hub: hub.of_store.delete_scheduler,
    view=lambda scheduler, _: scheduler_view(scheduler),
)
PARAMETERS = Kind(
    noun="parameter",
    stored=lambda hub: hub.settings.parameters,
    show=lambda hub: hub.of_store.parameter,
    make=lambda hub: hub.of_store.make_parameter,
    change=lambda hub: hub.of_store.change_parameter,
    delete=lambda hub: hub.of_store.delete_parameter,
    view=lambda parameter, _: parameter_view(parameter),
)
ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (*MAPPINGS.routes, *SCHEDULERS.routes, *PARAMETERS.routes)
