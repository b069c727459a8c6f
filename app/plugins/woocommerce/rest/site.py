"""What objects depend on besides their record: addresses, the time zone and settings."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property, partial
from typing import Any
from zoneinfo import ZoneInfo

from flask import current_app, has_request_context, request

from app.auth.principals import Capability, Permission, Principal
from app.conversions.dates import in_zone
from app.services.webhooks.deliveries.requests import public_url

Record = Mapping[str, Any]  # of a service
Object = dict[str, Any]  # of this dialect

NAMESPACE = "wc/v3"
VERSION = "9.0.0"
"""The version of WooCommerce that this service claims to be, because programs check it."""

STORED_DP = 2
"""Decimals with which amounts are stored."""

Entries = Sequence[tuple[int, str, object]]
"""Entries of metadata: ID, key and value."""

ITEM_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_RIGHTS = {
    "coupons": (Capability.EDIT_SHOP_COUPONS, Capability.DELETE_SHOP_COUPONS),
    "customers": (Capability.EDIT_USERS, Capability.DELETE_USERS),
    "orders": (Capability.PROCESS_SHOP_ORDERS, Capability.DELETE_SHOP_ORDERS),
}

_OF_CUSTOMERS = {
    "customers": Capability.LIST_USERS,
    "orders": Capability.READ_PRIVATE_SHOP_ORDERS,
    "redemptions": Capability.READ_PRIVATE_SHOP_ORDERS,
}
"""Resources with the addresses of customers, and the capabilities that read them."""


@dataclass(frozen=True)
class Site:
    """The shop as objects name it."""

    home: str  # the address of the shop, without a slash at the end
    zone: tzinfo | None = None  # the time zone of the shop; None for UTC
    dp: int = STORED_DP  # decimals of amounts of orders
    has_customer: bool = False  # whether orders have ``customer``
    include_meta: frozenset[str] = frozenset()  # keys of metadata to show; empty for all
    exclude_meta: frozenset[str] = frozenset()  # keys not to show
    actor: Principal | None = None  # the caller, whose rights links show; None for deliveries

    @cached_property
    def root(self) -> str:
        """The address of the namespace."""
        return f"{self.home}/wp-json/{NAMESPACE}"

    @cached_property
    def amount(self) -> Callable[[str], str]:
        """Prints a stored amount with ``dp`` decimals."""
        return str if self.dp == STORED_DP else partial(_rounded, self.dp)

    @cached_property
    def local(self) -> Callable[[str | None], str | None]:
        """Returns a printed UTC timestamp in the time zone of the shop, without a zone."""
        return partial(_local, self.zone) if self.zone else _without_zone

    @cached_property
    def methods(self) -> Mapping[str, Sequence[str]]:
        """The methods of a record that the caller has the capabilities for, by its noun."""
        held = self.actor.capabilities if self.actor else None
        return {
            noun: tuple(
                method
                for method in ITEM_METHODS
                if held is None or method == "GET" or {"DELETE": delete}.get(method, edit) in held
            )
            for noun, (edit, delete) in _RIGHTS.items()
        }

    @cached_property
    def shows_customers(self) -> bool:
        """Whether the key of the caller may read who has used a coupon.

        False for deliveries, because it is unknown which key a webhook was created with.
        """
        actor = self.actor
        if actor is None or Permission.READ not in actor.permission.parts:
            return False
        return any(
            actor.can(capability) and (actor.resources is None or resource in actor.resources)
            for resource, capability in _OF_CUSTOMERS.items()
        )

    @property
    def index_link(self) -> str:
        """Return the ``Link`` to the index of the site, which every response has."""
        return f'<{self.home}/wp-json/>; rel="https://api.w.org/"'

    @property
    def offset(self) -> str | float:
        """Return the hours between the local time and UTC, as the index of the site shows them."""
        now = datetime.now(self.zone or UTC).utcoffset() or timedelta()
        hours = now / timedelta(hours=1)
        return "0" if self.zone is None else int(hours) if hours.is_integer() else hours

    def url(self, *parts: object) -> str:
        """Return the address of a resource."""
        return "/".join((self.root, *map(str, parts)))

    def moment(self, text: str, *, is_gmt: bool = False) -> datetime:
        """Return the time of a text; without a zone it is local, or UTC if ``is_gmt``."""
        moment = datetime.fromisoformat(text.upper())
        if moment.tzinfo is None:
            zone = UTC if is_gmt or self.zone is None else self.zone
            moment = moment.replace(tzinfo=zone)
            if zone is not UTC:  # a time that does not exist moves forward
                moment = in_zone(in_zone(moment, UTC), zone)
        return in_zone(moment, UTC)

    def midnight(self, day: str) -> str:
        """Return the beginning of a local day in UTC, as a printed timestamp."""
        if self.zone is None:
            return f"{day}T00:00:00"
        start = datetime.combine(date.fromisoformat(day), datetime.min.time(), self.zone)
        return in_zone(start, UTC).isoformat()[:19]

    def links(
        self, path: str, record: object, methods: Sequence[str] = ITEM_METHODS
    ) -> dict[str, object]:
        """Return ``self`` and ``collection`` of a record below a path."""
        address = f"{self.root}/{path}"
        return {
            "self": [{"href": f"{address}/{record}", "targetHints": {"allow": methods}}],
            "collection": [{"href": address}],
        }

    def metadata(self, entries: Entries, hidden: Container[str] = ()) -> list[dict[str, object]]:
        """Return the entries that the request asks for, without hidden keys."""
        if keys := self.include_meta:
            entries = [entry for entry in entries if entry[1] in keys]
        elif keys := self.exclude_meta:
            entries = [entry for entry in entries if entry[1] not in keys]
        return metadata_list(entries, hidden)


def _without_zone(timestamp: str | None) -> str | None:
    return timestamp and timestamp[:19]


def _local(zone: tzinfo, timestamp: str | None) -> str | None:
    if timestamp is None:
        return None
    moment = datetime.fromisoformat(timestamp[:19]).replace(tzinfo=UTC)
    return in_zone(moment, zone).isoformat()[:19]


def _rounded(decimals: int, text: str) -> str:
    return f"{Decimal(text).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):f}"


def current_site() -> Site:
    """Return the site of the current request, or of the worker."""
    config = current_app.config
    home = config["SHOP_PUBLIC_URL"].rstrip("/") if config["SHOP_PUBLIC_URL"] else None
    if home is None and has_request_context():
        home = f"{request.scheme}://{request.host}{config['SHOP_URL_PREFIX']}"
    zone = str(config.get("SHOP_TIMEZONE", "UTC"))
    return Site(
        home or public_url(),
        None if zone == "UTC" else ZoneInfo(zone),
        has_customer=config["SHOP_WC_V3_CUSTOMER"],
    )


def metadata_list(entries: Entries, hidden: Container[str] = ()) -> list[Object]:
    """Return entries of metadata, without hidden keys. Scalars are shown as text."""
    return [
        {"id": entry_id, "key": key, "value": value if type(value) is str else shown_value(value)}
        for entry_id, key, value in entries
        if key not in hidden
    ]


def shown_value(value: object) -> Any:
    """Return a value of metadata: a list, an object or a text."""
    if isinstance(value, str | list | dict):
        return value
    if isinstance(value, bool) or value is None:
        return "1" if value else ""
    return str(value)
