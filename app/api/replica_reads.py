"""Selection of the requests that may read from a replica.

A replica can serve ``GET`` and ``HEAD`` requests of blueprints with ``reads_replicas`` if the
client requests all records at once, or states in a header how current the response must be. All
other requests use the primary. API keys and the event feed are always read from the primary.
``app.db.replicas.routing`` selects the replica.
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from flask import Flask, Response, current_app, g, request
from sqlalchemy.exc import SQLAlchemyError

from app.api.dialect import SAFE_METHODS
from app.db.replicas.monitor import Position, current_position
from app.db.replicas.routing import Replicas, current_replicas
from app.db.session import has_committed

POSITION = "X-Shop-Position"
"""Header of the responses to writes and to reads that may come from a replica, and of a request
that must see at least the same."""

_STALE_WHILE = re.compile(r"stale-while\s*=\s*\"?([0-9]{1,9})\"?")


class Wanted(NamedTuple):
    """How current a response that comes from a replica must be.

    Args:
        position: what it must include, or None.
        max_lag: seconds that it may lag behind, or None for SHOP_REPLICA_LAG_SECONDS.
    """

    position: Position | None = None
    max_lag: float | None = None


def init_app(app: Flask) -> None:
    """Let reads of an app use its replicas, and add the position to their responses and to writes.

    Does nothing without DATABASE_REPLICA_URLS. Call this after all routes are registered.
    """
    if not app.config["DATABASE_REPLICA_URLS"]:
        return
    for rule in app.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and _reads_replicas(app, rule.endpoint):
            app.view_functions[rule.endpoint] = _routed(app.view_functions[rule.endpoint])
    app.after_request(_add_position)


def _reads_replicas(app: Flask, endpoint: str) -> bool:
    """Return whether the views of an endpoint's blueprint may read from a replica."""
    return getattr(app.blueprints.get(endpoint.rpartition(".")[0]), "reads_replicas", False)


def wanted() -> Wanted | None:
    """Return how current the response to this request must be, or None for the primary.

    The primary serves requests with a malformed preference, or with a position in the format of
    another version of the service.
    """
    if request.method not in {"GET", "HEAD"}:
        return None
    max_lag = None
    if preferred := _STALE_WHILE.search(",".join(request.headers.getlist("Prefer"))):
        max_lag = float(preferred[1])
    if (sent := request.headers.get(POSITION)) is not None:
        position = Position.parse(sent)
        return position and Wanted(position, max_lag)
    if max_lag is not None:
        return Wanted(max_lag=max_lag)
    limit = request.args.get("filter[limit]", request.args.get("limit", ""))
    return Wanted() if limit.strip() == "-1" else None


def _routed(view: Callable[..., Any]) -> Callable[..., Any]:
    if hasattr(view, "reads_replicas"):  # a view with several rules
        return view

    @wraps(view)
    def wrapper(*args: object, **kwargs: object) -> object:
        how = wanted()
        if how is None:
            return view(*args, **kwargs)
        return _replicas().read(
            lambda: view(*args, **kwargs),
            position=how.position,
            max_lag=how.max_lag,
            note_shown=_note_shown,
        )

    wrapper.reads_replicas = True  # type: ignore[attr-defined]  # a mark on the view
    return wrapper


def _note_shown(position: Position | None) -> None:
    g.shown_position = position


def _replicas() -> Replicas:
    replicas = current_replicas()
    assert replicas is not None  # noqa: S101  # nosec B101  # see init_app
    return replicas


def _add_position(response: Response) -> Response:
    """Add the position to the response of a request that has written, or may have used a replica.

    A client that sends the position of its last response never sees an earlier state, whichever
    server its next read uses. Reads that the primary has served in place of a replica have one.
    """
    may_use_replica = "shown_position" in g
    if may_use_replica or (
        request.method not in SAFE_METHODS and response.status_code < 400 and has_committed()
    ):
        try:
            position = g.get("shown_position") or current_position()
            response.headers[POSITION] = str(position)
        except SQLAlchemyError:
            # The write is stored, so the response must say so. Without a position, the client
            # reads from the primary.
            current_app.logger.warning("The position of a response could not be read.")
    return response
