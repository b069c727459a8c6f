"""Coupons of this dialect: their fields, objects and operations (wc-v3, surface 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import marshmallow as ma

from app.auth.principals import Capability
from app.catalog import current_catalog
from app.conversions.dates import parse_date
from app.conversions.text import coupon_code
from app.db.session import reading_own_writes, run_in_transaction
from app.schemas.coupons.coupon import CouponCreate, CouponUpdate
from app.schemas.loading import instance_of
from app.services.coupons import writes
from app.services.coupons.records import CouponRecordQuery, list_records, records_by_id
from app.services.maintenance import trash
from app.woocommerce_rest.arguments import Arguments, Problem, is_date_time
from app.woocommerce_rest.batch import resource_routes
from app.woocommerce_rest.errors import RestError, invalid
from app.woocommerce_rest.frame import Call, Reply
from app.woocommerce_rest.lists import (
    BOOLEAN,
    INTEGER,
    INTEGERS,
    METADATA,
    MONEY,
    TEXT,
    collection,
    page,
    record_query,
)
from app.woocommerce_rest.site import Site, metadata_list

Record = Mapping[str, Any]
Object = dict[str, Any]

NAMES: Mapping[str, str] = {
    "code": "code", "amount": "amount", "discount_type": "type", "description": "description",
    "individual_use": "individual_use", "product_ids": "product_ids",
    "excluded_product_ids": "exclude_product_ids", "usage_limit": "usage_limit",
    "usage_limit_per_user": "usage_limit_per_user",
    "limit_usage_to_x_items": "limit_usage_to_x_items", "free_shipping": "enable_free_shipping",
    "product_categories": "product_category_ids",
    "excluded_product_categories": "exclude_product_category_ids",
    "exclude_sale_items": "exclude_sale_items", "minimum_amount": "minimum_amount",
    "maximum_amount": "maximum_amount", "email_restrictions": "customer_emails",
}  # fmt: skip
"""Native names of fields."""

MAX_PERCENTAGE = 100
OPTIONAL_DATE = {"type": ["null", "string"]}
STATUS = {"type": "string", "enum": ["publish", "trash"]}
_NO_STATUS = "This service has published coupons and those in the trash only."


_NOT_IN_V3 = "percent_product"
"""A type of the legacy API that this dialect shows and does not accept."""


def _types() -> list[str]:
    names = [name for name in current_catalog().coupon_types if name != _NOT_IN_V3]
    return sorted(names, key=("percent", "fixed_cart", "fixed_product", *names).index)


FIELDS: Arguments = {
    "code": TEXT,
    "amount": MONEY,
    "status": {**STATUS, "note": _NO_STATUS},
    "discount_type": {"type": "string", "enum": _types},
    "description": TEXT,
    "date_expires": OPTIONAL_DATE,
    "date_expires_gmt": OPTIONAL_DATE,
    "individual_use": BOOLEAN,
    "product_ids": INTEGERS,
    "excluded_product_ids": INTEGERS,
    "usage_limit": INTEGER,
    "usage_limit_per_user": INTEGER,
    "limit_usage_to_x_items": INTEGER,
    "free_shipping": BOOLEAN,
    "product_categories": INTEGERS,
    "excluded_product_categories": INTEGERS,
    "exclude_sale_items": BOOLEAN,
    "minimum_amount": MONEY,
    "maximum_amount": MONEY,
    "email_restrictions": {"type": "array", "items": TEXT},
    "meta_data": METADATA,
}


def coupon_object(record: Record, site: Site) -> Object:
    """Return a coupon of this dialect."""
    created, modified = record["created_at"], record["updated_at"]
    expires = record["expiry_date"]
    day = None if expires is None else f"{expires}T00:00:00"
    return {
        "id": record["id"],
        "code": record["code"],
        "amount": record["amount"] or "0.00",
        "status": "trash" if record["status"] == "trash" else "publish",
        "date_created": site.local(created),
        "date_created_gmt": created[:19],
        "date_modified": site.local(modified),
        "date_modified_gmt": modified[:19],
        "discount_type": record["type"],
        "description": record["description"],
        "date_expires": day,
        "date_expires_gmt": None if day is None else site.midnight(str(expires)),
        "usage_count": record["usage_count"],
        "individual_use": record["individual_use"],
        "product_ids": record["product_ids"],
        "excluded_product_ids": record["exclude_product_ids"],
        "usage_limit": record["usage_limit"] or None,
        "usage_limit_per_user": record["usage_limit_per_user"] or None,
        "limit_usage_to_x_items": record["limit_usage_to_x_items"] or None,
        "free_shipping": record["enable_free_shipping"],
        "product_categories": record["product_category_ids"],
        "excluded_product_categories": record["exclude_product_category_ids"],
        "exclude_sale_items": record["exclude_sale_items"],
        "minimum_amount": record["minimum_amount"] or "0.00",
        "maximum_amount": record["maximum_amount"] or "0.00",
        "email_restrictions": record["customer_emails"],
        "used_by": record["used_by"],
        "meta_data": metadata_list(record["metadata"], site),
        "_links": site.links("coupons", record["id"], methods=site.methods["coupons"]),
    }


def coupons(ids: Sequence[int], site: Site) -> list[Object]:
    """Return the coupons with these IDs."""
    with reading_own_writes():
        records = records_by_id(ids)
    return [coupon_object(record, site) for record in records]


def _found(coupon_id: int, site: Site, status: int = 404) -> Object:
    shown = coupons([coupon_id], site)
    if not shown:
        raise RestError("woocommerce_rest_shop_coupon_invalid_id", "Invalid ID.", status)
    return shown[0]


def list_coupons(call: Call) -> Reply:
    """Return a page of coupons."""
    query = record_query(call)
    if query["include"]:
        query["exclude"] = ()
    code = call.args.get("code")
    records, total = list_records(
        call.actor,
        CouponRecordQuery(
            **query,
            code=coupon_code(code) if code else None,
            is_trashed=call.args.get("status") == "trash",
        ),
    )
    return page(call, [coupon_object(record, call.site) for record in records], total)


def get_coupon(call: Call) -> Reply:
    """Return a coupon, also one in the trash."""
    return Reply(_found(call.ids["id"], call.site))


def create_coupon(call: Call) -> Reply:
    """Create a coupon."""
    code = "woocommerce_rest_shop_coupon_exists"
    require_no_id(call, code, "Cannot create existing shop_coupon.")
    data = _data(call, CouponCreate)

    def work(_: Any) -> Object:
        created = writes.create_coupon(call.actor, data)
        if call.given.get("status") == "trash":
            writes.delete_coupon(call.actor, created["id"], force=False)
        return _found(created["id"], call.site)

    return Reply(run_in_transaction(work), 201)


def update_coupon(call: Call) -> Reply:
    """Change a coupon. A status moves it into the trash or out of it."""
    coupon_id, status = call.ids["id"], call.given.get("status")
    data = _data(call, CouponUpdate)
    check = call.precondition(lambda record_id: _found(record_id, call.site))

    def work(_: Any) -> Object:
        before = _found(coupon_id, call.site, 400)
        _limit_percentage(before, data)
        is_trashed = before["status"] == "trash"
        if is_trashed and status == "publish":
            trash.restore_coupon(call.actor, coupon_id)
        writes.update_coupon(call.actor, coupon_id, data, check, trashed_too=True)
        if status == "trash" and not is_trashed:
            writes.delete_coupon(call.actor, coupon_id, force=False)
        return _found(coupon_id, call.site)

    return Reply(run_in_transaction(work))


def delete_coupon(call: Call) -> Reply:
    """Move a coupon to the trash, or delete it permanently with ``force``."""
    coupon_id, force = call.ids["id"], bool(call.args.get("force"))
    check = call.precondition(lambda record_id: _found(record_id, call.site))

    def work(_: Any) -> Object:
        shown = _found(coupon_id, call.site)
        if shown["status"] == "trash" and not force:
            message = "The shop_coupon has already been deleted."
            raise RestError("woocommerce_rest_already_trashed", message, 410)
        writes.delete_coupon(
            call.actor, coupon_id, force=force, trashed_too=True, precondition=check
        )
        return shown

    return Reply(run_in_transaction(work))


def require_no_id(call: Call, code: str, message: str) -> None:
    """Raise RestError for the create of a record with an ID."""
    if call.args.get("id") not in (None, "", 0, "0"):
        raise RestError(code, message)


def _data(call: Call, schema: type[ma.Schema]) -> Object:
    """Return the fields of a request as the services take them."""
    given: Object = {NAMES[name]: value for name, value in call.given.items() if name in NAMES}
    for name in ("amount", "minimum_amount", "maximum_amount"):
        if name in call.args and not call.args[name]:
            given[name] = 0
        if name in given and Decimal(given[name]) < 0:
            raise RestError("coupon_invalid_amount", "Invalid discount amount.")
    for name in ("usage_limit", "usage_limit_per_user", "limit_usage_to_x_items"):
        if name in given:
            given[name] = abs(given[name])
    if "customer_emails" in given:
        given["customer_emails"] = [each.lower() for each in given["customer_emails"]]
    if "code" in given and not coupon_code(given["code"]):
        message = "The coupon code cannot be empty."
        raise RestError("woocommerce_rest_empty_coupon_code", message)
    _limit_percentage({"discount_type": given.get("type")}, given)
    data: Object = instance_of(schema).load(given)
    for name in ("date_expires", "date_expires_gmt"):
        if call.args.get(name) is not None:
            data["expiry_date"] = _day(call, name)
            break
    if call.given.get("meta_data"):
        data["metadata"] = call.given["meta_data"]
    return data


def _limit_percentage(before: Record, data: Object) -> None:
    """Reject a percentage above 100. A stored amount becomes 0.00 (surface 7)."""
    if data.get("type", before["discount_type"]) != "percent":
        return
    if Decimal(data.get("amount") or 0) > MAX_PERCENTAGE:
        raise RestError("coupon_invalid_amount", "Invalid discount amount.")
    if "amount" not in data and Decimal(before.get("amount") or 0) > MAX_PERCENTAGE:
        data["amount"] = Decimal(0)


def _day(call: Call, name: str) -> Any:
    """Return the day of an expiry in the time zone of the shop."""
    text, site = call.args[name], call.site
    if not text:
        return None
    try:
        if is_date_time(text):
            moment = site.moment(text, is_gmt=name.endswith("_gmt"))
            return moment.astimezone(site.zone or UTC).date()
        return parse_date(text, datetime.now(site.zone or UTC).date())
    except ValueError:
        raise invalid({name: Problem("rest_invalid_date", "Invalid date.")}) from None


ROUTES = resource_routes(
    "coupon",
    (list_coupons, create_coupon, get_coupon, update_coupon, delete_coupon),
    (
        Capability.READ_PRIVATE_SHOP_COUPONS, Capability.PUBLISH_SHOP_COUPONS,
        Capability.READ_PRIVATE_SHOP_COUPONS, Capability.EDIT_SHOP_COUPONS,
        Capability.DELETE_SHOP_COUPONS,
    ),
    listed={
        **collection("date", "id", "include", "title", "slug", "modified"),
        "code": TEXT,
        "status": {"type": "string", "enum": ["publish", "trash", "any"], "note": _NO_STATUS},
    },
    created={**FIELDS, "code": {**TEXT, "required": True}},
    edited=FIELDS,
)  # fmt: skip
