"""Customers of this dialect: their fields, objects and operations (wc-v3, surface 8)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import marshmallow as ma
import orjson
from sqlalchemy.orm import Session

from app.auth.principals import ROLES, Capability, capabilities_of
from app.conversions.emails import EMAIL_MAX_LENGTH, comparable_email, is_email
from app.conversions.text import USERNAME_MAX_LENGTH, clean
from app.db.read_pool import fetch
from app.db.session import reading_own_writes, run_in_transaction
from app.errors import ShopError
from app.models import USERS
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import lists, schemas, stored_customers
from app.plugins.woocommerce.rest.errors import RestError, forbidden
from app.plugins.woocommerce.rest.operations import Call
from app.plugins.woocommerce.rest.resources import Resource
from app.plugins.woocommerce.rest.site import ITEM_METHODS, Object, Record, Site, metadata_list
from app.plugins.woocommerce.stored_keys import USER_KEYS
from app.schemas.base import Base, excluding
from app.schemas.customers import CustomerCreate, CustomerUpdate
from app.schemas.fields.json_schema import LONG_TEXT_MAX_LENGTH
from app.schemas.loading import instance_of
from app.services.common.bulk import BulkItem
from app.services.common.filtering import Find
from app.services.common.locks import hold_accounts
from app.services.common.metadata import CUSTOMER, entries_of
from app.services.customers import columns, writes
from app.services.customers.columns import NEW_ROLE
from app.services.customers.queries import of_role

EMAIL = arg.Argument("string", format="email", maxLength=EMAIL_MAX_LENGTH)
_STORED = USER_KEYS | {"paying_customer", "nickname", "description", "capabilities"}
"""Metadata with the name under which the original stores a field. It is not shown."""


def _address(component: str, parts: Sequence[str]) -> arg.ObjectArgument:
    texts = {part: EMAIL if part == "email" else arg.NAME for part in parts}
    return arg.ObjectArgument(component, "Parts of an address to write.", **arg.nullable(**texts))


BILLING = _address("BillingCreate", stored_customers.BILLING_PARTS)
SHIPPING = _address("ShippingCreate", stored_customers.SHIPPING_PARTS)
FIELDS: arg.Arguments = {
    "email": EMAIL,
    "first_name": arg.NAME,
    "last_name": arg.NAME,
    "username": arg.Argument("string", maxLength=USERNAME_MAX_LENGTH),
    "password": arg.LONG_TEXT,
    "billing": BILLING,
    "shipping": SHIPPING,
    "meta_data": arg.METADATA,
}


def avatar(email: str) -> str:
    """Return the URL of the avatar of an e-mail address."""
    digest = hashlib.sha256(email.strip().lower().encode()).hexdigest()
    return f"https://secure.gravatar.com/avatar/{digest}?s=96&d=mm&r=g"


def _shown_entries(record: Record) -> list[tuple[int, str, object]]:
    """Return the entries of metadata that are shown."""
    return [
        entry
        for entry in record["metadata"]
        if not entry[1].startswith(("_", "wp_"))
        and not entry[1].endswith(("_capabilities", "_user_level"))
        and entry[1] not in _STORED
    ]


def _methods(record: Record, site: Site) -> Sequence[str]:
    """Return the methods that the caller may use on an account.

    Users cannot delete their own account. As in WooCommerce, staff cannot be deleted here.
    """
    if site.actor is None:
        return ITEM_METHODS
    if not record["is_changeable"]:
        return ITEM_METHODS[:1]
    allowed = site.methods["customers"]
    if record["id"] != site.actor.user_id and record["role"] in _DELETABLE:
        return allowed
    return tuple(each for each in allowed if each != "DELETE")


class RestLastOrder(Base):
    """Latest order of a customer."""

    id = schemas.Integer()
    date = schemas.Text()


def _last_order(record: Record, site: Site) -> Object | None:
    _, _, last_id, last_date = record["statistics"]
    return {"id": last_id, "date": site.local(last_date)} if last_id else None


class RestCustomer(Base):
    """Customer."""

    id = schemas.Integer()
    date_created, date_created_gmt = schemas.times("created_at")
    date_modified, date_modified_gmt = schemas.times("updated_at")
    email = first_name = last_name = schemas.Text()
    role = username = schemas.Text()  # which a guest has not
    billing = schemas.one(schemas.RestBilling)
    shipping = schemas.one(schemas.RestShipping)
    is_paying_customer = schemas.Flag("is_paying", lambda is_paying, _: bool(is_paying))
    avatar_url = schemas.Text("email", lambda email, _: avatar(email))
    meta_data = schemas.many(
        schemas.RestMetadata, lambda record, site: site.metadata(_shown_entries(record))
    )
    orders_count = schemas.Integer(lambda record, _: record["statistics"][0])
    total_spent = schemas.Text(lambda record, _: record["statistics"][1])
    last_order = schemas.one(RestLastOrder, _last_order, allow_none=True)
    _links = schemas.links(
        lambda record, site: site.links("customers", record["id"], _methods(record, site))
    )


class RestOrderCustomer(RestCustomer):
    """Customer of an order. Guests have names and addresses only."""

    # The keys of metadata that a request asks for are not about customers of orders.
    meta_data = schemas.many(
        schemas.RestMetadata, lambda record, _: metadata_list(_shown_entries(record))
    )

    Meta = excluding("_links")

    def on_bind_field(self, field_name: str, field_obj: schemas.Field) -> None:
        """Require only the fields of guests."""
        field_obj.required = field_name in _OF_GUESTS


_OF_GUESTS = {"id", "email", "first_name", "last_name", "billing", "shipping"}
_account_objects = schemas.maker(RestOrderCustomer)


def order_customers(orders: Sequence[Record], site: Site) -> Iterable[object]:
    """Return the account of each order, or a guest; missing if the site does not show them."""
    if not site.has_customer:
        return [ma.missing] * len(orders)
    accounts = {each["customer_id"]: each["customer"] for each in orders if each["customer"]}
    made = _account_objects([*accounts.values()], site, ())
    shown = dict(zip(accounts, made, strict=True))
    return [shown[each["customer_id"]] if each["customer"] else _guest(each) for each in orders]


def _guest(order: Record) -> Object:
    """Return the names and addresses of the order of a guest."""
    billing, shipping = orjson.loads(orjson.dumps([order["billing"], order["shipping"]]))
    names = {name: billing[name] for name in ("email", "first_name", "last_name")}
    return {
        "id": 0,
        **names,
        "billing": {part: billing[part] for part in stored_customers.BILLING_PARTS},
        "shipping": {part: shipping[part] for part in stored_customers.SHIPPING_PARTS},
    }


_DELETABLE = ("customer", "subscriber", "")
_EVERY_RIGHT = capabilities_of(["administrator"])


def name_of_account(user_id: int) -> str:
    """Return the name of an account for a note, or an empty string.

    In a transaction the account is locked, so that a note does not keep the name of a person who
    is deleted at the same time.
    """
    run_in_transaction(lambda session: hold_accounts(session, [user_id]))
    with reading_own_writes():
        found = stored_customers.records_without_metadata([user_id])
    if not found:
        return ""
    name = f"{found[0]['first_name']} {found[0]['last_name']}".strip()
    return name or str(found[0]["username"])


def native_addresses(given: Record) -> Object:
    """Return addresses as the services take them."""
    return {
        f"{name}_address": {part: text for part, text in given[name].items() if text is not None}
        for name in ("billing", "shipping")
        if given.get(name)
    }


def with_shipping_phone(data: Object, given: Record) -> Object:
    """Return loaded fields with the phone number of the shipping address, which is not native."""
    phone = (given.get("shipping") or {}).get("phone")
    if phone is not None:
        shipping = data.get("shipping_address", {})
        data["shipping_address"] = {**shipping, "phone": clean(phone)}
    return data


def _data(call: Call, schema: type[ma.Schema]) -> Object:
    """Return the fields of a request as the services take them."""
    names = ("email", "first_name", "last_name", "username", "password")
    given = {name: call.given[name] for name in names if name in call.given}
    billing = (call.given.get("billing") or {}).get("email")
    if billing is not None and not is_email(billing):
        raise RestError("customer_invalid_billing_email", "Invalid billing email address")
    if "username" in given:
        given["username"] = clean(given["username"]) or given["username"]
    data: Object = instance_of(schema).load(given | native_addresses(call.given))
    # Hashing is slow, so it comes before the transaction.
    (item,) = columns.with_password_hashes([BulkItem(None, data)])
    data = dict(item.data)
    if call.given.get("meta_data"):
        data["metadata"] = call.given["meta_data"]
    return with_shipping_phone(data, call.given)


_ROLES = (
    "all",
    "administrator",
    "editor",
    "author",
    "contributor",
    "subscriber",
    "customer",
    "shop_manager",
)
ALL_ROLES = [*_ROLES, *(role for role in ROLES if role not in _ROLES)]


_ORDERS = ("id", "include", "name", "registered_date", "modified")


class Customers(Resource):
    """The accounts of the shop. The orders of a deleted one become orders of guests."""

    noun, kind, existing, result = "customer", "customer", "resource", RestCustomer
    table, columns, keys = USERS, stored_customers.COLUMNS, stored_customers.KEYS
    needs = (
        Capability.LIST_USERS,
        Capability.CREATE_USERS,
        Capability.EDIT_USERS,
        Capability.DELETE_USERS,
    )
    listed = {
        **lists.collection("Customer", *_ORDERS, default="name", order="asc"),
        "email": EMAIL,
        "role": arg.choice("CustomerListRole", ALL_ROLES, default="customer"),
        **lists.METADATA_KEYS,
    }
    created = {
        **FIELDS,
        "email": arg.Argument("string", required=True, maxLength=EMAIL_MAX_LENGTH),
        "username": arg.Argument("string", null_is_valid=False, maxLength=USERNAME_MAX_LENGTH),
        "password": arg.Argument("string", null_is_valid=False, maxLength=LONG_TEXT_MAX_LENGTH),
    }
    edited = FIELDS
    deleted = {"force": arg.FORCE, "reassign": arg.INTEGER}
    save = staticmethod(writes.save_customers)

    def unknown(self, call: Call, status: int) -> RestError:  # always 404
        return RestError("wc_user_invalid_id", "Invalid user ID.", 404)

    def query(self, call: Call) -> lists.RecordListQuery:
        query = super().query(call)
        if query.offset is not None:
            call.args = {**call.args, "page": -(-query.offset // call.args["per_page"]) + 1}
        return replace(query, exclude=()) if query.include else query

    def matching(self, call: Call, query: lists.RecordListQuery) -> Find:
        search = lists.phrase_of(query.search, USERS.c.search_text, USERS.c.id)
        conditions = lists.conditions_of(query, USERS.c)
        if (email := call.args.get("email")) is not None:
            conditions.append(USERS.c.email_normalized == comparable_email(email))
        return partial(of_role, call.args["role"] or "customer", conditions, search)

    def completed(self, records: list[Object], site: Site) -> list[Object]:
        """Return accounts with their metadata, and whether the caller may change them.

        Administrators may change all, others those of customers whose roles have no other rights.
        """
        ids = [each["id"] for each in records]
        held = site.actor.capabilities if site.actor else _EVERY_RIGHT
        roles = {} if held == _EVERY_RIGHT else stored_customers.roles_of(ids)
        metadata = entries_of(fetch, CUSTOMER, ids)
        for each in records:
            own = roles.get(each["id"], [])
            is_below = NEW_ROLE in own and capabilities_of(own) <= held
            each["is_changeable"] = held == _EVERY_RIGHT or is_below
            each["metadata"] = metadata.get(each["id"], [])
        return records

    def data(self, call: Call) -> Object:
        if call.ids:
            return _data(call, CustomerUpdate)
        if not call.given["email"]:
            message = "Please provide a valid email address."
            raise RestError("registration-error-invalid-email", message)
        return _data(call, CustomerCreate)

    def failed(self, call: Call, error: ShopError, before: Record | None) -> Exception:
        if error.code != "registration-error-email-exists":
            return error
        message = (
            f"An account is already registered with {call.given['email']}. "
            "Please log in or use a different email address."
        )
        return RestError(error.code, message)

    def lock(self, session: Session, calls: Sequence[Call]) -> None:
        if items := [BulkItem(call.ids["id"], call.given) for call in calls if call.ids]:
            writes.lock_accounts(session, items)

    def item(self, call: Call, data: Object, before: Record | None) -> BulkItem:
        if before and not before["is_changeable"]:
            raise forbidden("edit", is_known=True)
        if before and call.given.get("username", "") not in ("", before["username"]):
            code = "woocommerce_rest_customer_invalid_argument"
            raise RestError(code, "Username isn't editable.")
        return super().item(call, data, before)

    def require_as_asked(self, call: Call, after: Record) -> None:
        email = call.given.get("email")
        if email is not None and not columns.has_email(after, email):
            code = "woocommerce_rest_customer_invalid_email"
            raise RestError(code, "Email address is invalid.")

    def require_deletable(self, call: Call) -> None:
        if self.record(call)["role"] not in _DELETABLE:
            raise forbidden("delete", is_known=True)
        self.require_force(call, "Customers do")

    def remove(self, call: Call, shown: Object) -> None:
        heir = call.args.get("reassign")
        if heir and (heir == shown["id"] or not self.objects([heir], call.site)):
            code = "woocommerce_rest_customer_invalid_reassign"
            raise RestError(code, "Invalid resource id for reassignment.")
        writes.delete_customer(call.actor, shown["id"], call.check)
        del shown["_links"]["self"][0]["targetHints"]  # as on the original


CUSTOMERS = Customers()
ROUTES = CUSTOMERS.routes
