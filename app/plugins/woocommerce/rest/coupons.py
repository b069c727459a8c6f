"""Coupons of this dialect: their fields, objects and operations (wc-v3, surface 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial

import marshmallow as ma
from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    bindparam,
    case,
    cast,
    func,
    select,
    type_coerce,
)
from sqlalchemy.orm import Session

from app.auth.principals import Capability
from app.catalog import TRASH, current_catalog
from app.config.current import expiry_zone
from app.conversions.dates import in_zone, parse_date
from app.conversions.expiry import end_of_expiry, expiry_at, expiry_before
from app.conversions.text import CODE_MAX_LENGTH, coupon_code
from app.db.read_pool import Fetch, fetch
from app.db.sql.functions import is_one_of, json_list
from app.db.sql.types import IdList, Json
from app.errors import ShopError
from app.models import COUPONS, REDEMPTIONS
from app.models.redemption import IS_CONFIRMED
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import errors, lists, schemas
from app.plugins.woocommerce.rest.arguments import Arguments, Problem, is_date_time
from app.plugins.woocommerce.rest.errors import RestError, invalid
from app.plugins.woocommerce.rest.operations import Call
from app.plugins.woocommerce.rest.resources import Resource
from app.plugins.woocommerce.rest.site import Object, Record, Site
from app.plugins.woocommerce.stored_keys import COUPON_KEYS
from app.schemas.base import Base
from app.schemas.coupons.coupon import CouponCreate, CouponUpdate
from app.schemas.fields.list_input import EmailArray
from app.schemas.loading import instance_of
from app.services.common.bulk import BulkItem
from app.services.common.erased import is_erased
from app.services.common.filtering import Matching
from app.services.common.metadata import COUPON, entries_of
from app.services.coupons import writes
from app.services.coupons.queries import COUNTED, PUBLISHED, TRASHED
from app.services.maintenance import trash

MAX_USES = 1000
"""Uses of a coupon that a record names."""
_USE = REDEMPTIONS.c
_USER = case(
    (is_erased(_USE.customer_id), ""),
    (_USE.customer_id.is_not(None), cast(_USE.customer_id, String)),
    else_=_USE.email_normalized,
)
_IN_ORDER = func.row_number().over(partition_by=_USE.coupon_id, order_by=_USE.id)
# All coupons at once, because PostgreSQL finds the uses of different coupons on the same pages.
# The window sorts the uses of each coupon, and the aggregate keeps this order.
_EACH = (
    select(_USE.coupon_id, _USER.label("user"), _IN_ORDER.label("place"))
    .where(is_one_of(_USE.coupon_id, bindparam("ids", type_=IdList)), IS_CONFIRMED)
    .subquery()
    .c
)
_USERS: Select[int, list[str]] = (
    select(_EACH.coupon_id, type_coerce(json_list(_EACH.user), Json()))
    .where(_EACH.place <= MAX_USES, _EACH.user != "")
    .group_by(_EACH.coupon_id)
)

_KEYS: Mapping[str, ColumnElement[object]] = {
    "date": COUPONS.c.created_at,
    "modified": COUPONS.c.updated_at,
    "id": COUPONS.c.id,
    "title": COUPONS.c.code,
    "slug": COUPONS.c.code,
}


def _uses(fetch: Fetch, ids: Sequence[int]) -> dict[int, list[str]]:
    """Return the customers or e-mail addresses of the confirmed uses of coupons that have one."""
    return {row[0]: row[1] for row in fetch(_USERS, {"ids": ids})} if ids else {}


MAX_PERCENTAGE = 100
_NO_STATUS = "This service has published coupons and those in the trash only."


_NOT_IN_V3 = "percent_product"
"""A type of the legacy API that this dialect shows and does not accept."""


def _types() -> list[str]:
    names = [name for name in current_catalog().coupon_types if name != _NOT_IN_V3]
    return sorted(names, key=("percent", "fixed_cart", "fixed_product", *names).index)


FIELDS: Arguments = {
    "code": arg.Argument("string", maxLength=CODE_MAX_LENGTH),
    "amount": arg.MONEY,
    "status": arg.choice("CouponStatus", ["publish", "trash"], note=_NO_STATUS),
    "discount_type": arg.choice("CouponDiscountType", _types),
    "description": arg.LONG_TEXT,
    "date_expires": arg.DAY,
    "date_expires_gmt": arg.DAY,
    "individual_use": arg.BOOLEAN,
    "product_ids": arg.INTEGERS,
    "excluded_product_ids": arg.INTEGERS,
    "usage_limit": arg.COUNT,
    "usage_limit_per_user": arg.COUNT,
    "limit_usage_to_x_items": arg.COUNT,
    "free_shipping": arg.BOOLEAN,
    "product_categories": arg.INTEGERS,
    "excluded_product_categories": arg.INTEGERS,
    "exclude_sale_items": arg.BOOLEAN,
    "minimum_amount": arg.MONEY,
    "maximum_amount": arg.MONEY,
    "email_restrictions": arg.ListArgument(items=arg.TEXT),
    "meta_data": arg.METADATA,
}
_CONVERTED = {"status", "date_expires", "date_expires_gmt", "meta_data"}
_NATIVE = {name: native for native, name in errors.NAMES.items()}
NAMES = {name: _NATIVE.get(name, name) for name in FIELDS if name not in _CONVERTED}
"""Native name of each field that needs no conversion."""
_STORED = COUPON_KEYS | {"_used_by"}
"""Metadata with the name under which the original stores a field. It is not shown."""
_SUMS = [name for name in NAMES if "amount" in name]
_LIMITS = [name for name in NAMES if "limit" in name]
_ID_LISTS = {native for name, native in NAMES.items() if FIELDS[name] is arg.INTEGERS}


def _end(record: Record, site: Site) -> tuple[str | None, str | None]:
    """Return when a coupon stops working, as local time and in UTC (wc-v3, surface 7)."""
    if (expiry := record["expiry_date"]) is None:
        return None, None
    if (zone := expiry_zone()) is None:
        return f"{expiry}T00:00:00", site.midnight(str(expiry))
    end = end_of_expiry(date.fromisoformat(str(expiry)), zone)
    return in_zone(end, zone).isoformat()[:19], end.isoformat()[:19]


_Amount = partial(schemas.Text, convert=lambda amount, _: amount or "0.00")
_Limit = partial(schemas.OptionalInteger, convert=lambda number, _: number or None)


class RestCoupon(Base):
    """Coupon."""

    id = schemas.Integer()
    code, amount = schemas.Text(), _Amount()
    status = schemas.Text(convert=lambda status, _: TRASH if status == TRASH else "publish")
    date_created, date_created_gmt = schemas.times("created_at")
    date_modified, date_modified_gmt = schemas.times("updated_at")
    discount_type, description = schemas.Text("type"), schemas.Text()
    date_expires = schemas.OptionalText(lambda record, site: _end(record, site)[0])
    date_expires_gmt = schemas.OptionalText(lambda record, site: _end(record, site)[1])
    usage_count, individual_use = schemas.Integer(), schemas.Flag()
    product_ids = schemas.Integers()
    excluded_product_ids = schemas.Integers("exclude_product_ids")
    usage_limit = usage_limit_per_user = limit_usage_to_x_items = _Limit()
    free_shipping = schemas.Flag("enable_free_shipping")
    product_categories = schemas.Integers("product_category_ids")
    excluded_product_categories = schemas.Integers("exclude_product_category_ids")
    exclude_sale_items = schemas.Flag()
    minimum_amount = maximum_amount = _Amount()
    email_restrictions = schemas.Texts("customer_emails")
    used_by = schemas.Texts(convert=lambda users, site: users if site.shows_customers else [])
    meta_data = schemas.many(
        schemas.RestMetadata, lambda record, site: site.metadata(record["metadata"], _STORED)
    )
    _links = schemas.links(
        lambda record, site: site.links("coupons", record["id"], site.methods["coupons"])
    )


def _data(call: Call, schema: type[ma.Schema]) -> Object:
    """Return the fields of a request as the services take them."""
    given: Object = {NAMES[name]: value for name, value in call.given.items() if name in NAMES}
    for name in _SUMS:
        if name in call.args and not call.args[name]:
            given[name] = 0
    for name in _LIMITS:
        if name in given:
            given[name] = abs(given[name])
    for name in given.keys() & _ID_LISTS:
        given[name] = list(dict.fromkeys(map(abs, given[name])))
    if "customer_emails" in given:
        given["customer_emails"] = _addresses(given["customer_emails"])
    if "code" in given and not coupon_code(given["code"][: CODE_MAX_LENGTH + 1]):
        raise ShopError("shop_api_missing_coupon_code")
    _limit_amount({"type": given.get("type")}, given)
    data: Object = instance_of(schema).load(given)
    for name in ("date_expires", "date_expires_gmt"):
        if call.args.get(name) is not None:
            data["expiry_date"] = _day(call, name)
            break
    if call.given.get("meta_data"):
        data["metadata"] = call.given["meta_data"]
    return data


def _addresses(entries: Sequence[str]) -> list[str]:
    """Return the addresses that can use a coupon.

    The original drops entries that are not addresses, which opens the coupon for everyone.
    """
    addresses = [each.strip().lower() for each in entries if each.strip()]
    if EmailArray().loss(addresses, addresses):
        reason = "email_restrictions must contain only valid e-mail addresses."
        raise invalid({"email_restrictions": Problem("rest_invalid_param", reason)})
    return addresses


def _limit_amount(before: Record, data: Object) -> None:
    """Reject a negative amount, or a percentage above 100. A stored one becomes 0 (surface 7)."""
    is_percentage = data.get("type", before["type"]) == "percent"
    most = MAX_PERCENTAGE if is_percentage else Decimal("Infinity")
    if not 0 <= Decimal(data.get("amount") or 0) <= most:
        raise RestError("coupon_invalid_amount", "Invalid discount amount.")
    if "amount" not in data and Decimal(before.get("amount") or 0) > most:
        data["amount"] = Decimal(0)


def _day(call: Call, name: str) -> object:
    """Return the expiry date that a time or a day in the time zone of the shop means."""
    text, site, last_days = call.args[name], call.site, expiry_zone()
    if not text:
        return None
    try:
        if is_date_time(text):
            moment = site.moment(text, is_gmt=name.endswith("_gmt"))
            if last_days:
                return expiry_at(moment, last_days)
            return in_zone(moment, site.zone or UTC).date()
        day = parse_date(text, datetime.now(site.zone or UTC).date())
        return day and expiry_before(day, last_days)
    except ValueError:
        raise invalid({name: Problem("rest_invalid_date", "Invalid date.")}) from None


class Coupons(Resource):
    """The coupons of the shop."""

    noun, kind, result = "coupon", "shop_coupon", RestCoupon
    table, columns, keys = COUPONS, tuple(COUPONS.c), _KEYS
    needs = (
        Capability.READ_PRIVATE_SHOP_COUPONS,
        Capability.PUBLISH_SHOP_COUPONS,
        Capability.EDIT_SHOP_COUPONS,
        Capability.DELETE_SHOP_COUPONS,
    )
    listed = {
        **lists.collection("Coupon", "date", "id", "include", "title", "slug", "modified"),
        "code": arg.TEXT,
        "status": arg.choice("CouponListStatus", ["publish", "trash", "any"], note=_NO_STATUS),
        **lists.METADATA_KEYS,
    }
    created = {**FIELDS, "code": arg.Argument("string", required=True, maxLength=CODE_MAX_LENGTH)}
    edited = FIELDS
    erase = staticmethod(writes.delete_coupon)
    restore = staticmethod(trash.restore_coupon)
    save = staticmethod(partial(writes.save_coupons, trashed_too=True))

    def query(self, call: Call) -> lists.RecordListQuery:
        query = super().query(call)
        if query.include:
            return replace(query, exclude=())
        return replace(query, orderby="date") if query.orderby == "include" else query

    def matching(self, call: Call, query: lists.RecordListQuery) -> Matching:
        """Return published coupons, or those in the trash."""
        search, compared = lists.words_of(query.search, COUPONS.c.search_text, COUPONS.c.id)
        conditions = [*lists.conditions_of(query, COUPONS.c), *compared]
        if code := call.args.get("code"):
            conditions.append(COUPONS.c.code == coupon_code(code))
        if call.args.get("status") == TRASH:
            return Matching(COUPONS.c.id, conditions, TRASHED, search=search)
        return Matching(COUPONS.c.id, conditions, PUBLISHED, COUNTED, search, TRASHED)

    def completed(self, records: list[Object], site: Site) -> list[Object]:
        metadata = entries_of(fetch, COUPON, [each["id"] for each in records])
        uses = _uses(fetch, [each["id"] for each in records if each["usage_count"]])
        for each in records:
            each["metadata"] = metadata.get(each["id"], [])
            each["used_by"] = uses.get(each["id"], [])
        return records

    def data(self, call: Call) -> Object:
        return _data(call, CouponUpdate if call.ids else CouponCreate)

    def lock(self, session: Session, calls: Sequence[Call]) -> None:
        items = [
            BulkItem(
                call.ids["id"],
                {"code": coupon_code(call.given["code"])} if "code" in call.given else {},
            )
            for call in calls
            if call.ids
        ]
        writes.lock_coupons(session, items, trashed_too=True)

    def item(self, call: Call, data: Object, before: Record | None) -> BulkItem:
        if before is not None:
            _limit_amount(before, data)
        return super().item(call, data, before)


RESOURCE = Coupons()
ROUTES = RESOURCE.routes
