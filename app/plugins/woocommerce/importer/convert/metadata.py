"""Conversion of the metadata of a source: rows that are no field of this shop (records 4 and 5)."""

import re
from collections.abc import Collection
from functools import lru_cache

import orjson

from app.plugins.woocommerce.importer.convert import Alterations, SourceEntry
from app.plugins.woocommerce.importer.dump.values import REPLACEMENT
from app.plugins.woocommerce.importer.source.php_values import (
    Unconverted,
    UnreadableValue,
    unserialized,
)
from app.plugins.woocommerce.importer.source.staging import MetaRows, entries_in
from app.plugins.woocommerce.importer.tables import ITEM_KEYS
from app.services.common.metadata_rules import FOUND_LENGTH, found_text

POSTS, USERS = frozenset({"postmeta", "wc_orders_meta"}), frozenset({"usermeta"})
ITEMS = frozenset({"woocommerce_order_itemmeta"})

LEFT_OUT: tuple[tuple[frozenset[str], str, str], ...] = (
    (
        POSTS,
        """_edit_lock _edit_last _encloseme _pingme _wp_old_slug _wp_old_date
        _wp_desired_post_slug _wp_page_template _wp_trash_meta_.+""",
        "WordPress: editing and the trash of posts",
    ),
    (
        USERS,
        """.*capabilities .*user_level .*user-settings .*user-settings-time admin_color locale
        rich_editing syntax_highlighting comment_shortcuts use_ssl show_admin_bar_.+
        show_welcome_panel dismissed_.+ closedpostboxes_.+ metaboxhidden_.+ meta-box-order_.+
        screen_layout_.+ manage.+columnshidden edit_.+_per_page nav_menu_recently_edited
        .*dashboard_quick_press_last_post_id .*media_library_mode community-events-location
        default_.+_nag""",
        "WordPress: roles, and settings of its screens",
    ),
    (
        USERS,
        "_woocommerce_persistent_cart.* _woocommerce_load_saved_cart_after_login wc_last_active",
        "WooCommerce: carts and visits",
    ),
    (
        USERS,
        """_money_spent _order_count _last_order wc_money_spent_.+ wc_order_count_.+
        wc_last_order_.+""",
        "WooCommerce: sums of orders, which this shop computes",
    ),
    (
        POSTS,
        "_billing_address_index _shipping_address_index",
        "WooCommerce: copies of addresses for searches",
    ),
    (
        POSTS,
        "_recorded_coupon_usage_counts",
        "WooCommerce: whether an order uses its coupons, which becomes redemptions",
    ),
    (
        POSTS | USERS | ITEMS,
        "(?i:.*(?:password|passwd|secret|token|session|totp|2fa|nonce|private_key|api_key).*)",
        "passwords, tokens and sessions",
    ),
)
"""Tables, patterns of keys that are not imported, and the reason (docs/moving-in.md)."""

REPEATED = (ITEM_KEYS["line_item"] | ITEM_KEYS["shipping"] | {"_refunded_item_id"}) - {
    "_line_tax_data",
    "taxes",
}
"""Keys of items of refunds that are their fields, or repeat the refunded item."""

HIDDEN = "_"

_SECOND = frozenset(":;")
"""Second characters of serialized values."""
_SERIALIZED = re.compile(r"(?:[adObisCE]:.*[;}]|N;)\s*", re.DOTALL)
_UNSTORABLE = re.compile(f"[\0\ud800-\udfff{REPLACEMENT}]")
"""Also what the reader of dumps has replaced, so that the report names it."""


class MetadataConverter:
    """Converts metadata, and counts what is left out.

    Args:
        keep: keys that are imported although they are in the list of keys that are left out.

    Attributes:
        left_out: the number of rows that are left out, by table and key.
    """

    def __init__(self, keep: Collection[str] = ()) -> None:
        self._keep = frozenset(keep)
        self.left_out: dict[tuple[str, str], int] = {}

    def entries(
        self, table: str, rows: MetaRows, fields: Collection[str], altered: Alterations
    ) -> list[SourceEntry]:
        """Return the entries of a record.

        Args:
            table: the table of the source, for the report.
            fields: keys whose first row is a field of the record.
            altered: alterations of the record, to which further ones are added.
        """
        found, keep, remaining = [], self._keep, set(fields)
        for key, value, row_id in entries_in(rows):
            name = key or ""
            if name in remaining:
                remaining.remove(name)
            elif reason_to_leave_out(table, name) and name not in keep:
                count = self.left_out.get((table, name), 0)
                self.left_out[table, name] = count + 1
            else:
                found.append(_entry(int(row_id or 0), name, value, altered))
        return found


def reasons_by_key(counts: dict[tuple[str, str], int]) -> list[tuple[str, str, int, str]]:
    """Return table, key, number and reason of what was left out, sorted."""
    return [
        (table, key, number, reason_to_leave_out(table, key) or "")
        for (table, key), number in sorted(counts.items())
    ]


_PATTERNS = tuple(
    (tables, re.compile("|".join(keys.split()), re.DOTALL), why) for tables, keys, why in LEFT_OUT
)


@lru_cache(5000)
def reason_to_leave_out(table: str, key: str) -> str | None:
    """Return why rows with a key are not imported, or None if they are."""
    return next(
        (why for tables, keys, why in _PATTERNS if table in tables and keys.fullmatch(key)), None
    )


def _entry(row_id: int, key: str, value: str | None, altered: Alterations) -> SourceEntry:
    stored, internal = _storable(key, key, altered), key[:1] == HIDDEN
    if value is None:
        return (row_id, stored, "null", None, internal)
    if value[1:2] in _SECOND and _SERIALIZED.fullmatch(value):
        try:
            parsed = unserialized(value)
        except UnreadableValue:
            pass  # a text such as "a:b;"
        else:
            text = orjson.dumps(_json(parsed, stored, altered)).decode()
            return (row_id, stored, text, found_text(text), internal)
    value = _storable(value, key, altered)
    found = value if len(value) <= FOUND_LENGTH else None
    return (row_id, stored, orjson.dumps(value).decode(), found, internal)


def _storable(text: str, key: str, altered: Alterations) -> str:
    """Return a text without characters that a database cannot store."""
    if (text.isascii() and "\0" not in text) or not _UNSTORABLE.search(text):
        return text
    altered.append(f"characters of the metadata {key[:80]!r} were replaced by U+FFFD")
    return _UNSTORABLE.sub(REPLACEMENT, text)


def _json(value: object, key: str, altered: Alterations) -> object:
    """Return a value of PHP as JSON. An array with the keys 0, 1 and so on becomes a list."""
    if isinstance(value, dict):
        if list(value) == list(range(len(value))):
            return [_json(each, key, altered) for each in value.values()]
        return {
            _storable(str(name), key, altered): _json(each, key, altered)
            for name, each in value.items()
        }
    if isinstance(value, Unconverted):
        altered.append(f"the metadata {key!r} contains an object of PHP, which is kept as its text")
        return _storable(value.text, key, altered)
    if isinstance(value, float) and value - value != 0:  # orjson writes null
        altered.append(f"the metadata {key!r} contains {value}, which is kept as text")
        return str(value)
    return _storable(value, key, altered) if isinstance(value, str) else value
