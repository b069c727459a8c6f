"""What an order accepts after its personal data was erased (people 5)."""

import re
from collections.abc import Iterable, Iterator, Mapping

from flask import current_app

from app.errors import Sentence, ShopError
from app.models.order import OrderRow
from app.models.personal_data import POSTCODE_LENGTH, Remains, emptied
from app.services.common.bulk import Data
from app.services.common.metadata import METADATA
from app.services.common.metadata_rules import added_keys
from app.services.orders.columns import columns_of
from app.services.orders.downloads import DOWNLOAD_PERMISSIONS
from app.services.orders.items import KINDS

EMPTIED = frozenset({"customer_id", *emptied("orders", Remains.EMPTY)})
"""Columns that stay empty."""

_SHORTENED = emptied("orders", Remains.BEGINNING)

_MUST_BE_EMPTY = Sentence("must stay empty, because the personal data of the order was erased.")
_MUST_BE_SHORT = Sentence(
    "can have at most {0} characters, because the personal data of the order was erased.",
    POSTCODE_LENGTH,
)


def require_no_personal_data(data: Mapping[str, object]) -> None:
    """Raise ShopError if an update would fill what an erasure has emptied.

    Empty values are accepted, so that a program can send back what it has read.
    """
    for place, reason in _filled(data):
        raise _not_accepted(f"order.{place}", reason)


def _not_accepted(param: str, reason: Sentence = _MUST_BE_EMPTY) -> ShopError:
    message = "{param}: {reason}"
    return ShopError("shop_api_cannot_update_order", param=param, message=message, reason=reason)


def require_no_personal_refund(order: OrderRow, data: Mapping[str, object]) -> None:
    """Do the same for what a request writes into a refund of an order, which can be erased."""
    if order["erased_at"] is None:
        return
    filled = ["reason"] if data.get("reason") else []
    for place in [*filled, *_filled_metadata(data, ["line_items"])]:
        raise _not_accepted(f"order_refund.{place}")


def _filled(data: Data) -> Iterator[tuple[str, Sentence]]:
    """Return the places in an order that an update would fill, and what the erasure allows."""
    for name, value in columns_of(data).items():
        place = re.sub("^(billing|shipping)_", r"\1_address.", name)
        if value and name in EMPTIED:
            yield place, _MUST_BE_EMPTY
        if name in _SHORTENED and len(value.strip()) > POSTCODE_LENGTH:
            yield place, _MUST_BE_SHORT
    for place in _filled_metadata(data, KINDS):
        yield place, _MUST_BE_EMPTY
    if data.get(DOWNLOAD_PERMISSIONS):
        yield DOWNLOAD_PERMISSIONS, _MUST_BE_EMPTY


def _filled_metadata(data: Data, kinds: Iterable[str]) -> Iterator[str]:
    """Return the places that get what an erasure removes from metadata, also of items."""
    items = [(kind, *each) for kind in kinds for each in enumerate(data.get(kind) or ())]
    yield from (f"{kind}[{index}].meta" for kind, index, item in items if item.get("meta"))
    places = [("", data), *((f"{kind}[{index}].", item) for kind, index, item in items)]
    for place, given in places:
        if not is_kept(added_keys(given.get(METADATA) or ())):
            yield f"{place}{METADATA}"


def is_kept(keys: Iterable[str]) -> bool:
    """Return whether an erasure keeps all of these keys of metadata."""
    return set(keys) <= {*current_app.config["SHOP_ERASURE_KEEPS_METADATA"]}
