"""What plugins extend: coupon types, order statuses, event types, orders, and hooks for changes."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from typing import Any

import marshmallow as ma
from flask import current_app

from app.pricing.discounts import COUPON_TYPES, CouponType, Rule, no_discount

EXTENSION = "shop_api"
"""Key in ``app.extensions`` under which each app keeps its catalog."""


class RedemptionEffect(StrEnum):
    """Effect of an order status on the uses of the coupons of the order (redemptions 4)."""

    RESERVE = "reserve"
    CONFIRM = "confirm"
    RELEASE = "release"
    UNCHANGED = "unchanged"


MAX_PRICE = Decimal(10) ** 16

TRASH = "trash"
"""Status of a record in the trash. It is not a known order status, so lists and sums exclude it."""


EVENT_TYPES: Mapping[str, str] = {
    "campaign.created": "A campaign was created.",
    "campaign.updated": "A campaign was updated.",
    "campaign.deleted": "A campaign was permanently deleted.",
    "coupon.created": "A coupon was created.",
    "coupon.updated": "A coupon was updated.",
    "coupon.deleted": "A coupon was moved to the trash, or permanently deleted.",
    "coupon.restored": "A coupon was restored from the trash.",
    "coupon.redeemed": "A use of a coupon was reserved or confirmed.",
    "coupon.released": "A use of a coupon was released, or its reservation expired.",
    "customer.created": "A customer was created.",
    "customer.updated": "A customer was updated.",
    "customer.deleted": "A customer was permanently deleted.",
    "customer.merged": "Another account was merged into a customer.",
    "order.created": "An order was created.",
    "order.updated": "An order was updated.",
    "order.deleted": "An order was moved to the trash, or permanently deleted.",
    "order.restored": "An order was restored from the trash.",
    "order_note.created": "A note was added to an order.",
    "order_note.updated": "The text of a note was changed.",
    "order_note.deleted": "A note was permanently deleted.",
    "order_refund.created": "A refund of an order was recorded.",
    "order_refund.updated": "A refund was updated.",
    "order_refund.deleted": "A refund was permanently deleted.",
    "coupon_batch.created": "Coupons were generated. Summary.",
    "invitation.created": "A colleague was invited to the admin pages.",
    "invitation.accepted": "An invitation was accepted, which created a user and a key.",
    "key.created": "An API key was created.",
    "key.updated": "The rights or the description of an API key were changed.",
    "key.rotated": "The secret of an API key was replaced.",
    "key.deleted": "An API key was revoked.",
    "import.completed": "Records were imported. Summary.",
    "person.erased": "The personal data of a person was erased. IDs and numbers only.",
    "webhook.disabled": "The service disabled a webhook.",
}
"""The built-in event types and their meanings (events 1)."""

EVENT_TYPE = re.compile(r"[a-z][a-z0-9_]{0,49}\.[a-z][a-z0-9_]{0,49}")
"""Form of an event type: ``<resource>.<what happened>``."""


class DuplicateNameError(ValueError):
    """The catalog already has an entry with this name."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a record or an event of a plugin, for hooks.

    Attributes:
        event: the event type, ``<resource>.<what happened>``: for example ``order.created``.
        before: the record by its column names before the change; None for a new record, for a use
            of a coupon and for events of plugins.
        after: the record after the change; None if it was deleted permanently, and for events of
            plugins.
        user_id: the user that made the change; None for a command.
        request_id: the ID of the request; None for a command.
        key_id: the API key of the request; None for a command.
        session_id: the session of the admin pages; None for a request to the API.
        data: the data of the event, by the names of the API.
        changes: the fields that differ, ``before`` and ``after``, by the names of the API; None if
            the event has none (people 1).
        redemption: for a use of a coupon, ``id``, ``status``, ``reference`` and ``order_id`` of the
            redemption after the change; otherwise empty.
    """

    event: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    user_id: int | None = None
    request_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    redemption: Mapping[str, Any] = field(default_factory=dict)
    key_id: int | None = None
    session_id: int | None = None
    changes: Mapping[str, Any] | None = None

    @property
    def resource(self) -> str:
        """Return the type of the record, for example ``order``."""
        return self.event.partition(".")[0]

    @property
    def record(self) -> Mapping[str, Any]:
        """Return the record after the change, or before it if it was deleted permanently."""
        return self.after or self.before or {}


@dataclass(frozen=True, slots=True)
class ChangeHook:
    """Functions that are called when records of a resource change.

    Each function gets all changes of a request at once, in their order.

    Args:
        resource: type of the records, for example ``order``, or ``*`` for all types.
        before_commit: called in the transaction, after the changes and their events are written.
            It can raise ShopError, which rejects the request and rolls the transaction back. It is
            called again when the transaction is retried.
        after_commit: called once, after the commit. Its exceptions are logged and change nothing.
    """

    resource: str
    before_commit: Callable[[Sequence[Change]], None] | None = None
    after_commit: Callable[[Sequence[Change]], None] | None = None

    def is_for(self, resource: str) -> bool:
        """Return whether the functions are called for changes of a resource."""
        return self.resource in {resource, "*"}


@dataclass(frozen=True, slots=True)
class ErasedPerson:
    """The person, or the part of its orders, that an erasure concerns.

    Attributes:
        customer_id: the account; None for a guest, and while orders of the account remain.
        emails: its e-mail addresses, lower-cased; empty while orders remain.
        order_ids: the orders.
    """

    customer_id: int | None
    emails: Sequence[str]
    order_ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class PersonHook:
    """What a plugin stores of persons (people 5).

    Args:
        name: name of its list in the data of a person, for example ``reviews``.
        data: function that takes the ID of the account or None, the e-mail addresses and the IDs of
            orders, and returns JSON values.
        erase: function that deletes the data in the transaction of an erasure, and returns how much
            it deleted. It can raise ShopError, which rejects the erasure. It is called again when
            the transaction is retried.
    """

    name: str
    data: Callable[[ErasedPerson], Iterable[Any]]
    erase: Callable[[ErasedPerson], int]


PriceHook = Callable[[int, int, str], Decimal | int | str | None]
"""Function ``price_of(product_id, quantity, currency)``: the price of one unit, or None."""


@dataclass(frozen=True, slots=True)
class OrderExtension:
    """A key that is added to every order in every response (spec 2.3).

    Args:
        key: name of the key.
        field: describes the value in the OpenAPI document.
        values: function that takes the orders of a response, as the API returns them, and returns
            one value per order, in the same order.
    """

    key: str
    field: ma.fields.Field[Any]
    values: Callable[[Sequence[dict[str, Any]]], Sequence[Any]]

    def values_in(
        self, schemas: Mapping[type[ma.Schema], type[ma.Schema]], orders: Sequence[dict[str, Any]]
    ) -> Sequence[object]:
        """Return the values for a dialect that replaces some schemas. By default, all are equal."""
        return self.values(orders)


EventData = Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]
"""Function that returns ``data`` of the events of some records, as the native API shows them."""


@dataclass(frozen=True, slots=True)
class FormedDelivery:
    """A delivery in the form of a plugin.

    Attributes:
        body: what ``WebhookForm.bodies`` has returned for its event.
        source: the public address of the shop.
    """

    webhook_id: int
    delivery_id: int
    event_type: str
    body: bytes
    secret: str = field(repr=False)
    source: str


@dataclass(frozen=True, slots=True)
class WebhookForm:
    """What webhooks send that do not follow Standard Webhooks. Each of them has one topic.

    Args:
        is_topic: function that returns whether a text can be the topic.
        bodies: function that returns the body of each of several events with ``id`` (None for an
            example), ``type``, ``resource_id``, ``created_at`` and ``data`` as JSON.
        headers: function that returns the headers of a delivery, such as its signature. It is
            called for each attempt.
        ping: function that returns the form data of the ping of a webhook, given its ID. The
            receiver gets the ping when its webhook becomes active.
        successes: the statuses that mean that the receiver has the event.
    """

    is_topic: Callable[[str], bool]
    bodies: Callable[[Sequence[Mapping[str, Any]]], Iterable[bytes]]
    headers: Callable[[FormedDelivery], Mapping[str, str]]
    ping: Callable[[int], bytes]
    successes: frozenset[int]


@dataclass(slots=True)
class Catalog:
    """What the core and the plugins of one app have registered.

    Attributes:
        coupon_types: rule of each known coupon type by its name (spec 2.1, redemptions 3).
        order_statuses: label of each known order status by its name (decisions 7).
        redemption_effects: effect of each order status on uses of coupons (redemptions 4).
        change_hooks: hooks for changes, in the order in which they were added.
        event_types: meaning of each known event type by its name (events 1).
        event_plugins: name of the plugin that has added an event type, by the type.
        resources: names of the resources that an API key can be limited to: those of all
            blueprints that require a key.
        event_data: function that returns the data of events, by the name of the resource.
        event_values: function that returns the fields of a record that ``changes`` of events
            compare, by the name of the resource.
        add_page: function that adds a page to the admin pages, if they exist.
        add_panel: function that adds a panel to them.
        webhook_forms: forms of webhooks in addition to Standard Webhooks, by their names.
        order_extensions: extensions of order responses by their key.
        person_hooks: what plugins store of persons, by the name of its list.
        price_hooks: functions that know prices of products, in the order in which they were added.
        plugins: names of the loaded plugins, in loading order.
    """

    coupon_types: dict[str, CouponType] = field(default_factory=lambda: dict(COUPON_TYPES))
    order_statuses: dict[str, str] = field(
        default_factory=lambda: {
            "pending": "Pending payment",
            "processing": "Processing",
            "on-hold": "On hold",
            "completed": "Completed",
            "cancelled": "Cancelled",
            "refunded": "Refunded",
            "failed": "Failed",
        }
    )

    change_hooks: list[ChangeHook] = field(default_factory=list)
    event_types: dict[str, str] = field(default_factory=lambda: dict(EVENT_TYPES))
    event_plugins: dict[str, str] = field(default_factory=dict)
    event_data: dict[str, EventData] = field(default_factory=dict)
    event_values: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = field(
        default_factory=dict
    )
    webhook_forms: dict[str, WebhookForm] = field(default_factory=dict)
    add_page: Callable[..., None] = lambda *_, **__: None
    add_panel: Callable[..., None] = lambda *_, **__: None

    resources: set[str] = field(default_factory=set)
    order_extensions: dict[str, OrderExtension] = field(default_factory=dict)
    person_hooks: dict[str, PersonHook] = field(default_factory=dict)
    price_hooks: list[PriceHook] = field(default_factory=list)
    plugins: list[str] = field(default_factory=list)

    redemption_effects: dict[str, RedemptionEffect] = field(
        default_factory=lambda: {
            "pending": RedemptionEffect.RESERVE,
            "processing": RedemptionEffect.CONFIRM,
            "on-hold": RedemptionEffect.CONFIRM,
            "completed": RedemptionEffect.CONFIRM,
            "cancelled": RedemptionEffect.RELEASE,
            "refunded": RedemptionEffect.UNCHANGED,
            "failed": RedemptionEffect.RELEASE,
        }
    )

    def add_change_hook(self, hook: ChangeHook) -> None:
        """Add a hook for the changes of a resource."""
        self.change_hooks.append(hook)

    @property
    def event_resources(self) -> list[str]:
        """Return the resources of the known event types."""
        return list(dict.fromkeys(name.partition(".")[0] for name in self.event_types))

    def add_event_type(self, name: str, meaning: str) -> None:
        """Add an event type.

        Args:
            name: ``<resource>.<what happened>``, for example ``gift_card.sent``.
            meaning: one sentence for the documentation.

        Raises:
            DuplicateNameError: the type exists.
            ValueError: the name has another form.
        """
        if not EVENT_TYPE.fullmatch(name):
            raise ValueError(f"{name!r} is not an event type such as 'gift_card.sent'")
        if name in self.event_types:
            raise DuplicateNameError(f"the event type {name!r} already exists")
        self.event_types[name] = meaning

    def add_coupon_type(
        self, name: str, rule: Rule | None = None, *, discounts_cart: bool = False
    ) -> None:
        """Add a coupon type.

        Args:
            rule: computes its discounts (``app.pricing.discounts.Rule``); None gives no discount.
            discounts_cart: whether it discounts the whole cart, not only the eligible items.

        Raises:
            DuplicateNameError: the type exists.
        """
        if name in self.coupon_types:
            raise DuplicateNameError(f"the coupon type {name!r} already exists")
        self.coupon_types[name] = CouponType(rule or no_discount, discounts_cart=discounts_cart)

    def add_order_status(
        self,
        name: str,
        label: str,
        *,
        redemption_effect: RedemptionEffect | str = RedemptionEffect.UNCHANGED,
    ) -> None:
        """Add an order status.

        Args:
            redemption_effect: what an order that gets this status does to the uses of its coupons:
                ``reserve``, ``confirm``, ``release`` or ``unchanged``.

        Raises:
            DuplicateNameError: the status exists.
            ValueError: the effect is unknown.
        """
        if name in self.order_statuses or name == TRASH:
            raise DuplicateNameError(f"the order status {name!r} already exists")
        effect = RedemptionEffect(redemption_effect)
        self.order_statuses[name] = label
        self.redemption_effects[name] = effect

    def add_order_extension(self, extension: OrderExtension) -> None:
        """Add a key to every order response (spec 2.3). Raises DuplicateNameError if it exists."""
        if extension.key in self.order_extensions:
            raise DuplicateNameError(f"the order extension {extension.key!r} already exists")
        self.order_extensions[extension.key] = extension

    def add_price_hook(self, price_of: PriceHook) -> None:
        """Add a function that knows the prices of new lines that do not name one.

        Args:
            price_of: takes the ID of the product, or of its variation, the quantity and the
                currency, and returns the price of one unit, or None if it does not know it. It can
                raise ShopError, which rejects the order.
        """
        self.price_hooks.append(price_of)

    def price_of(self, product_id: int, quantity: int, currency: str) -> Decimal | None:
        """Return the price of one unit, with six decimals, from the first plugin that knows it.

        Raises:
            ValueError: a plugin has returned something else than a price, which is its bug.
        """
        for hook in self.price_hooks:
            if (price := hook(product_id, quantity, currency)) is not None:
                exact = Decimal(price) if isinstance(price, Decimal | int | str) else Decimal("nan")
                if not 0 <= exact < MAX_PRICE:
                    call = f"price_of({product_id}, {quantity}, {currency!r})"
                    raise ValueError(f"{call} of a plugin has returned {price!r}, not a price")
                return exact.quantize(Decimal("0.000001"), ROUND_HALF_UP)
        return None

    def add_person_hook(self, hook: PersonHook) -> None:
        """Add what a plugin stores of persons. Raises DuplicateNameError if the name exists."""
        if hook.name in self.person_hooks:
            raise DuplicateNameError(f"the data of persons {hook.name!r} already exists")
        self.person_hooks[hook.name] = hook


def current_catalog() -> Catalog:
    """Return the catalog of the current app."""
    catalog: Catalog = current_app.extensions[EXTENSION]
    return catalog
