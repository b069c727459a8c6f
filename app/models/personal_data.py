"""Where personal data is stored, and what remains of it after an erasure (people 5).

The erasure, its preview, the deletion of a customer and the data of a person read this description.
A test fails for a column that is neither in PERSONAL nor in OTHER.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from app.models.address import BILLING_PARTS, SHIPPING_PARTS, SHIPPING_PHONE


class Content(StrEnum):
    """What a column contains of a person."""

    NAME = "name"
    EMAIL = "e-mail address"
    PHONE = "phone number"
    PLACE = "street, city or postcode"
    TEXT = "free text"
    DEVICE = "address or name of a device"
    ANY = "text or JSON that can repeat any of them"


class Remains(StrEnum):
    """What remains of a value after an erasure."""

    NOTHING = "the row is deleted"
    EMPTY = "an empty value"
    BEGINNING = "the first 2 characters"
    HASH = "a keyed hash, with which limits of coupons still count"
    ERASED = "erased@erased.invalid in place of the address"
    DERIVED = "what is computed from the values that remain"
    VALUES = "values that are not personal: names in NAMES and EMPTY_VALUES become empty"
    KEPT_KEYS = "the keys in SHOP_ERASURE_KEEPS_METADATA"
    META = "the items without ``meta``"


class Personal(NamedTuple):
    """Content of a column, and what remains of it."""

    content: Content
    remains: Remains


POSTCODE_LENGTH = 2
"""Characters of a postcode that an erasure keeps."""

_CONTENT = {
    "email": Content.EMAIL,
    "phone": Content.PHONE,
    **dict.fromkeys(("first_name", "last_name", "company"), Content.NAME),
}
_KEPT_PARTS = ("state", "country")


def _address(remains: Remains) -> dict[str, Personal]:
    """Return the columns of both addresses, without those that an erasure of an order keeps."""
    found = {
        f"{prefix}_{part}": Personal(_CONTENT.get(part, Content.PLACE), remains)
        for prefix, parts in (("billing", BILLING_PARTS), ("shipping", SHIPPING_PARTS))
        for part in parts
        if remains is Remains.NOTHING or part not in _KEPT_PARTS
    }
    return found | {SHIPPING_PHONE: Personal(Content.PHONE, remains)}


_POSTCODE = Personal(Content.PLACE, Remains.BEGINNING)
_DELETED_NAME = Personal(Content.NAME, Remains.NOTHING)
_DELETED_EMAIL = Personal(Content.EMAIL, Remains.NOTHING)
_DELETED_TEXT = Personal(Content.TEXT, Remains.NOTHING)
_DELETED_ANY = Personal(Content.ANY, Remains.NOTHING)
_DELETED_METADATA = dict.fromkeys(("key", "value", "found_value"), _DELETED_ANY)
_METADATA = dict.fromkeys(("key", "value", "found_value"), Personal(Content.ANY, Remains.KEPT_KEYS))

PERSONAL: Mapping[str, Mapping[str, Personal]] = {
    "users": {
        **dict.fromkeys(
            (
                *("username", "username_normalized", "first_name", "last_name"),
                *("name_normalized", "name_sort", "first_name_sort", "last_name_sort"),
            ),
            _DELETED_NAME,
        ),
        **dict.fromkeys(("email", "email_normalized"), _DELETED_EMAIL),
        "search_text": _DELETED_ANY,
        "tags": _DELETED_TEXT,
        **_address(Remains.NOTHING),
    },
    "user_tags": {"tag": _DELETED_TEXT},
    "customer_metadata": _DELETED_METADATA,
    "merged_accounts": dict.fromkeys(("email", "email_normalized"), _DELETED_EMAIL),
    "api_keys": {"description": _DELETED_TEXT},
    "admin_sessions": {"user_agent": Personal(Content.DEVICE, Remains.NOTHING)},
    "sign_in_links": {"login": _DELETED_NAME},
    "orders": {
        **_address(Remains.EMPTY),
        "billing_postcode": _POSTCODE,
        "shipping_postcode": _POSTCODE,
        "note": Personal(Content.TEXT, Remains.EMPTY),
        "customer_ip": Personal(Content.DEVICE, Remains.EMPTY),
        "customer_user_agent": Personal(Content.DEVICE, Remains.EMPTY),
        "line_items": Personal(Content.TEXT, Remains.META),
        "item_details": Personal(Content.TEXT, Remains.META),
        "search_text": Personal(Content.ANY, Remains.DERIVED),
        "billing_email_normalized": Personal(Content.EMAIL, Remains.DERIVED),
    },
    "order_metadata": _METADATA,
    "item_metadata": {name: _METADATA[name] for name in ("key", "value")},
    "refund_metadata": _METADATA,
    "order_refunds": {
        "reason": Personal(Content.TEXT, Remains.EMPTY),
        "line_items": Personal(Content.TEXT, Remains.META),
    },
    "order_notes": {"note": _DELETED_TEXT, "author": _DELETED_NAME},
    "download_permissions": dict.fromkeys(
        ("download_name", "download_url", "file_name", "file_url"), _DELETED_TEXT
    ),
    "redemptions": dict.fromkeys(
        ("email", "email_normalized"), Personal(Content.EMAIL, Remains.HASH)
    ),
    "coupons": {"customer_emails": Personal(Content.EMAIL, Remains.ERASED)},
    "coupon_refusals": {"code": _DELETED_EMAIL},
    "refused_carts": dict.fromkeys(("code", "email_normalized"), _DELETED_EMAIL),
    "events": dict.fromkeys(("data", "changes"), Personal(Content.ANY, Remains.VALUES)),
    "idempotency_records": {"response_body": Personal(Content.ANY, Remains.VALUES)},
    "idempotency_persons": {"person": _DELETED_EMAIL},
    "webhook_deliveries": dict.fromkeys(
        ("response_headers", "response_body"), Personal(Content.ANY, Remains.EMPTY)
    ),
    # Until the worker has completed the erasure.
    "erasures": {"traces_encrypted": _DELETED_ANY},
    "import_runs": {"name": Personal(Content.ANY, Remains.EMPTY)},
    "import_parts": {"content": _DELETED_ANY},
    "uploads": dict.fromkeys(("name", "content", "failures"), _DELETED_ANY),
    "import_errors": dict.fromkeys(("message", "sentence", "param"), _DELETED_ANY),
}
"""The columns with personal data of customers, by the names of their tables."""

_RECORD = "id created_at updated_at revision"
OTHER: Mapping[str, str] = {
    "users": f"{_RECORD} password_hash",
    "user_roles": "user_id role position registered_at",
    "user_tags": "user_id",
    "customer_metadata": "id customer_id internal",
    "customer_totals": "customer_id orders_count total_spent",
    "merged_accounts": "id customer_id",
    "api_keys": "id user_id permission consumer_key_hash consumer_secret_hash truncated_key "
    "created_at consumer_secret_encrypted resources expires_at last_used_at",
    "admin_sessions": "id token_hash key_id created_at expires_at last_used_at",
    "sign_in_links": "id token_hash key_id created_at expires_at role permission resources "
    "key_expires_at",
    "orders": f"{_RECORD} customer_id order_number order_key status currency completed_at total "
    "subtotal cart_tax shipping_tax total_shipping total_discount payment_method_id "
    "payment_method_title payment_paid shipping_lines tax_lines fee_lines coupon_lines "
    "billing_state billing_country shipping_state shipping_country next_item_id trashed_at "
    "status_before_trash transaction_id paid_at created_via parent_id prices_include_tax "
    "discount_tax cart_hash version total_refunded items fees erased_at",
    "order_metadata": "id order_id internal",
    "item_metadata": "id order_id item_id internal",
    "refund_metadata": "id refund_id internal",
    "order_refunds": f"{_RECORD} order_id amount refunded_by",
    "order_notes": "id order_id created_at customer_note",
    "order_products": "order_id product_id quantity",
    "order_sums": "customer_id status shard orders total",
    "stale_totals": "customer_id shard",
    "download_permissions": "id order_id product_id download_id downloads_remaining access_expires",
    # The reference is the number of a cart or an order in the program that reserves the use.
    "redemptions": "id coupon_id code reference order_id customer_id amount status holds_slot "
    "created_at updated_at expires_at confirmed_at campaign_id",
    # What the shop writes about its own offers.
    "campaigns": "id name created_at updated_at active starts_at ends_at usage_limit "
    "usage_limit_per_user budget tags combines_with stored_uses stored_discount search_text",
    "coupons": f"{_RECORD} status author_id code type amount individual_use product_ids "
    "exclude_product_ids usage_limit usage_limit_per_user limit_usage_to_x_items usage_count "
    "expiry_date enable_free_shipping product_category_ids exclude_product_category_ids "
    "exclude_sale_items minimum_amount maximum_amount description search_text trashed_at "
    "reserved_count batch_id edited_at active starts_at options campaign_id",
    "deleted_coupons": "id",
    "coupon_metadata": "id coupon_id key value found_value internal",
    "coupon_batches": "id author_id created_at count prefix pattern charset name campaign_id",
    "refused_carts": "id created_at reason customer_id total currency",
    "coupon_refusals": "day reason is_known count first_at last_at",
    "events": "position id type resource resource_id created_at request_id user_id customer_id "
    "key_id session_id",
    "erasures": "id created_at step after erased",
    "erased_accounts": "customer_id erasure_id email_normalized",
    "event_feed": "id last_id removed_id",
    "idempotency_records": "id request_hash body_hash status created_at",
    "idempotency_persons": "record_id",
    # The errors of attempts are those of the service, and the headers are computed by it.
    "webhook_deliveries": "id webhook_id event_id resource resource_id state attempts "
    "attempt_count next_attempt_at created_at request_headers",
    "delivery_counts": "result count",
    "webhooks": "id name format status disabled_reason topics delivery_url secret_encrypted "
    "previous_secret_encrypted previous_secret_until user_id created_at updated_at "
    "last_delivery_at failing_since position failure_count resume_at lease_owner lease_until "
    "is_bare",
    "import_parts": "import_id position",
    "uploads": "id session_id kind on_conflict digest size position created updated skipped failed "
    "created_at queued_at claimed_at",
    "import_errors": "import_id line code",
    # With the fingerprint of the record at the source. Without it, an import would write the
    # record again.
    "imported_records": "import_source_id kind source_id target_id fingerprint updated_at "
    "usage_count",
    "import_sources": "id name started_at finished_at",
    "import_runs": "id source kind created updated progress_at finished_at status format "
    "on_conflict dry_run size position skipped failed reason user_id key_id created_at started_at "
    "claimed_at",
    "demo_runs": "id seed present customers coupons orders customers_loaded coupons_loaded "
    "orders_loaded first_customer first_coupon first_order finished_at",
    "item_ids": "id single",
    "oauth_nonces": "id timestamp",
    "row_counts": "table_name partition week shard count",
    "total_statuses": "id statuses",
}
"""The columns without personal data, and those of an account that are deleted with it."""

NAMES = frozenset(
    {
        *PERSONAL["users"],
        "billing_address",
        "shipping_address",
        "billing",
        "shipping",
        "customer_ip",
        "customer_ip_address",
        "customer_user_agent",
        "note",
        "customer_note",
        "reason",
        "transaction_id",
        "refunded_by",
        "login",
        "author",
        "description",
    }
)
"""Names of personal values in JSON of customers, orders, notes, refunds, invitations and keys,
in every dialect and at any depth. All texts in them become empty."""

EMPTY_VALUES: Mapping[str, object] = {
    "metadata": {},
    "customer_meta": {},
    "order_meta": {},
    "meta_data": [],
    "meta": [],  # attributes of lines
    "tags": [],
    "avatar_url": None,  # an empty text is not a URL
}
"""Empty values of what is metadata in one of the dialects, or derived from personal data."""


def emptied(table: str, remains: Remains) -> tuple[str, ...]:
    """Return the columns of a table of which this remains."""
    return tuple(name for name, each in PERSONAL[table].items() if each.remains is remains)
