"""The import steps of coupons, from posts and their metadata, and of the uses that they store."""

import re
from collections.abc import Container, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import partial

from app.conversions import dates
from app.conversions.emails import sanitize_email
from app.conversions.expiry import expiry_before
from app.conversions.numbers import money, whole_number
from app.conversions.text import CODE_MAX_LENGTH, clean
from app.db.search import LONG, email_key, search_text
from app.models import REDEMPTIONS
from app.models.coupon import COUNTS, CouponStatus
from app.plugins.woocommerce.importer.context import (
    PAGE,
    ImportContext,
    imported_uses,
    redemption,
    released,
)
from app.plugins.woocommerce.importer.convert import (
    Alterations,
    Converted,
    LeftOut,
    code_of,
    ids,
    is_yes,
    whole,
)
from app.plugins.woocommerce.importer.convert.coupon_plugins import add_plugin_fields
from app.plugins.woocommerce.importer.kinds import COUPON, COUPON_USE, ORDER
from app.plugins.woocommerce.importer.source.clock import EPOCH, ShopClock, from_unix
from app.plugins.woocommerce.importer.source.php_values import UnreadableValue, list_of
from app.plugins.woocommerce.importer.source.staging import Meta, MetaRows, Pages, meta_in
from app.plugins.woocommerce.importer.steps.orders import count_kept_uses
from app.plugins.woocommerce.importer.tables import COUPON_KEYS

STATUSES: dict[str | None, tuple[CouponStatus, str]] = {
    "publish": (CouponStatus.PUBLISHED, ""),
    "private": (CouponStatus.PUBLISHED, "published"),  # works as a published one
    "draft": (CouponStatus.PUBLISHED, "published and paused"),
    "pending": (CouponStatus.PUBLISHED, "published and paused"),
    "future": (CouponStatus.PUBLISHED, "published with its date as start"),
    "trash": (CouponStatus.TRASH, ""),
}
"""What becomes of a coupon, and what the report says."""
DEFAULT_TYPE = "fixed_cart"
_IDS = {
    "product_ids": "product_ids",
    "exclude_product_ids": "exclude_product_ids",
    "product_category_ids": "product_categories",
    "exclude_product_category_ids": "exclude_product_categories",
}
_FLAGS = {
    "individual_use": "individual_use",
    "enable_free_shipping": "free_shipping",
    "exclude_sale_items": "exclude_sale_items",
}
_NOT_IN_AMOUNT = re.compile(r"[^0-9.,-]")
_NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")


def coupons(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert coupons, published or in the trash."""
    metas = context.staging.meta_rows("postmeta", list(page))

    sources = {post_id: (rows[-1], metas.get(post_id, [])) for post_id, rows in page.items()}
    found = context.converted(COUPON, "posts", sources, partial(_coupon, context))
    meant = context.index.coupons_of(each.values["code"] for each in found)
    for each in found:
        newest = meant[each.values["code"]]
        if each.values["status"] == CouponStatus.PUBLISHED and newest != each.source_id:
            is_older = page[each.source_id][-1][1] == "publish"
            other = "newer coupon" if is_older else "coupon"
            _into_trash(each.values)
            each.altered.append(
                f"the {other} {newest} has the same code, so the coupon was moved to the trash"
            )
    yield found


def _coupon(
    context: ImportContext, post_id: int, row: Sequence[str | None], rows: MetaRows
) -> Converted:
    """Return a coupon.

    Args:
        row: the columns of the post after its ID.

    Raises:
        LeftOut: its status is unknown, or it has no code.
    """
    _, status, title, excerpt, author, date_local, date_gmt, modified_local, modified_gmt, _ = row
    altered, meta, clock = Alterations(), meta_in(rows), context.source.clock
    new_status = _status(status, altered)
    code = _code(title, altered)
    created = clock.utc(date_gmt, date_local) or EPOCH
    updated = clock.utc(modified_gmt, modified_local) or created
    description = altered.text(excerpt)
    values: dict[str, object] = {
        "status": new_status,
        "trashed_at": None,
        "code": code,
        "type": altered.text(meta.get("discount_type")) or DEFAULT_TYPE,
        "created_at": created,
        "updated_at": updated,
        "amount": _amount(meta, altered),
        **{name: _ids(meta, key, altered) for name, key in _IDS.items()},
        **{name: altered.number(meta.get(name), name) for name in COUNTS},
        "expiry_date": _expiry(meta, clock, altered),
        **_schedule(status, created),
        **{name: is_yes(meta.get(key)) for name, key in _FLAGS.items()},
        **{name: _money(meta, name, altered) for name in ("minimum_amount", "maximum_amount")},
        "customer_emails": _emails(meta, altered),
        "description": description,
        "search_text": search_text(code, description),
    }
    _check_type(values, context.catalog.coupon_types, altered)
    add_plugin_fields(values, meta, clock, altered)
    if values["status"] == CouponStatus.TRASH:
        values["trashed_at"] = from_unix(meta.get("_wp_trash_meta_time")) or updated
    author_id = whole_number(author or "")
    references = {"author": author_id} if author_id else {}
    entries = context.metadata.entries("postmeta", rows, COUPON_KEYS, altered)
    return Converted(post_id, values, altered, references, metadata=entries)


def _status(status: str | None, altered: Alterations) -> CouponStatus:
    if status not in STATUSES:
        raise LeftOut(f"the coupon has the status {status!r}")
    new_status, then = STATUSES[status]
    if then:
        altered.append(f"the coupon has the status {status!r} and is {then}")
    return new_status


def _schedule(status: str | None, created: datetime) -> dict[str, object]:
    """Return the start of a coupon, and whether it is active. Without a date, it is paused."""
    starts_at = created if status == "future" and created != EPOCH else None
    is_paused = status in {"draft", "pending"} or (status == "future" and not starts_at)
    return {"active": not is_paused, "starts_at": starts_at}


def _code(title: str | None, altered: Alterations) -> str:
    code = code_of(title)
    if not code:
        raise LeftOut("the code is empty")
    if len(code) > CODE_MAX_LENGTH:
        raise LeftOut(f"the code is longer than {CODE_MAX_LENGTH} characters")
    if code != (title or "").lower():
        altered.append(f"the code {title!r} is stored as {code!r}")
    return code


def _into_trash(values: dict[str, object]) -> None:
    values |= {"status": CouponStatus.TRASH, "trashed_at": values["updated_at"]}


def _check_type(
    values: dict[str, object], coupon_types: Container[str], altered: Alterations
) -> None:
    kind = str(values["type"])
    if kind in coupon_types:
        return
    # The legacy server accepts an unknown type and uses its default instead.
    if clean(kind) in coupon_types:
        values["type"] = DEFAULT_TYPE
        altered.append(f"the type {kind!r} is read as {DEFAULT_TYPE}")
        return
    _into_trash(values)
    altered.append(f"the type {kind!r} is unknown, so the coupon was moved to the trash")


def _amount(meta: Meta, altered: Alterations) -> Decimal:
    """Return the amount, which the legacy server reads as 0 if it is not a valid discount."""
    stored = meta.get("coupon_amount") or ""
    # The legacy server removes all other characters. If the rest is not a number, it uses 0.
    text = _NOT_IN_AMOUNT.sub("", stored)
    try:
        amount = money(text) or Decimal("0.00")
    except ValueError:
        amount = Decimal("0.00")
    if text != stored or (text and not _NUMBER.fullmatch(text)):
        altered.append(f"coupon_amount {stored[:40]!r} is not a number, and is read as {amount}")
    if amount < 0 or (amount > 100 and meta.get("discount_type") == "percent"):
        altered.append(f"the amount {amount} is not valid, and counts as 0 as it did before")
        return Decimal("0.00")
    return amount


def _money(meta: Meta, name: str, altered: Alterations) -> Decimal | None:
    text = meta.get(name)
    return Decimal(altered.cents(text, name)).scaleb(-2) if text else None


def _list(meta: Meta, name: str, altered: Alterations) -> list[str]:
    try:
        return list_of(meta.get(name))
    except UnreadableValue:
        altered.append(f"{name} cannot be read, and was emptied")
        return []


def _ids(meta: Meta, name: str, altered: Alterations) -> list[int]:
    stored = _list(meta, name, altered)
    if any(not whole(text) for text in stored if text.strip(" 0")):
        altered.append(f"entries of {name} that are not IDs were removed")
    return ids(stored)


def _emails(meta: Meta, altered: Alterations) -> list[str]:
    stored = _list(meta, "customer_email", altered)
    emails = [sanitize_email(email.lower()) for email in stored if email.strip()]
    if not all(emails):
        altered.append("invalid addresses of customer_email were removed")
    return [email for email in emails if email]


def _expiry(meta: Meta, clock: ShopClock, altered: Alterations) -> date | None:
    """Return the date in ``date_expires``, or otherwise in ``expiry_date``."""
    if timestamp := from_unix(meta.get("date_expires")):
        day, loses_time = clock.expiry(timestamp)
        if loses_time:
            altered.append(f"the coupon expired at {timestamp:%Y-%m-%d %H:%M} UTC; the day is kept")
        return day
    if not (text := (meta.get("expiry_date") or "").strip()):
        return None
    try:
        stops = dates.parse_date(text, EPOCH.date())
        return stops and expiry_before(stops, clock.expiry_zone)
    except ValueError:
        altered.append(f"expiry_date {text[:40]!r} is not a date, and was removed")
        return None


def claim_codes(context: ImportContext) -> None:
    """Determine the coupon of each code: the newest published coupon."""
    for page in context.staging.pages("posts:shop_coupon", PAGE):
        for post_id, rows in page.items():
            _, status, title, _, _, local, gmt, *_ = rows[-1]
            if status in STATUSES and (code := code_of(title)):
                created = context.source.clock.utc(gmt, local) or EPOCH
                context.index.add_code(code, post_id, created, published=status == "publish")


def count_redemptions(context: ImportContext) -> int:
    """Return the number of uses that coupons store and that belong to no imported order."""
    for orders in context.writer.records.all_of(ORDER.name):
        count_kept_uses(context, context.staging.missing(context.source.layout.orders, orders))
    for page in context.staging.pages("used_by", PAGE):
        context.index.add_stored_uses(
            [
                (coupon_id, email_key(text) if whole_number(text) is None else text, meta_id)
                for coupon_id, rows in page.items()
                for meta_id, value in rows
                if (text := (value or "").replace("\0", "").strip())
            ]
        )
    return context.index.find_uses_beyond_orders()


def release_uses(context: ImportContext) -> None:
    """Release the stored uses of coupons that the source counts for an order, or does not have."""
    records = context.writer.records
    for entries in records.all_of(COUPON_USE.name):
        targets = records.targets(COUPON_USE.name, context.index.not_beyond(entries))
        uses = imported_uses(context, COUPON_USE, REDEMPTIONS.c.id.in_(targets.values()))
        of_uses = records.sources("coupon", [use.coupon_id for use in uses.values()])
        gone = set(context.staging.missing("posts:shop_coupon", list(of_uses.values())))
        context.writer.write(
            COUPON_USE,
            [
                released(meta_id, use, {}, "postmeta")
                for meta_id, use in uses.items()
                if use.status == "confirmed" and of_uses.get(use.coupon_id) not in {None, *gone}
            ],
        )


def redemptions(
    context: ImportContext, uses: Sequence[tuple[int, str, int]]
) -> Iterator[list[Converted]]:
    """Convert the uses that ``count_redemptions`` has counted."""
    targets = context.writer.records.targets("coupon", [use[0] for use in uses])
    rows = context.staging.one_by_id("posts:shop_coupon", list({use[0] for use in uses}))
    clock = context.source.clock
    found = []
    for coupon_id, customer_key, meta_id in uses:
        if (target := targets.get(coupon_id)) is None or coupon_id not in rows:
            continue  # not imported, or only its metadata is left at the source
        customer_id = whole_number(customer_key)
        _, _, title, _, _, local, gmt, modified_local, modified, _ = rows[coupon_id]
        at = clock.utc(modified, modified_local) or clock.utc(gmt, local) or EPOCH
        is_address = customer_id is None and not customer_key.startswith(LONG)
        email = customer_key if is_address else ""
        values = {
            "code": code_of(title),
            "email": email,
            "amount": None,
            "status": "confirmed",
            "created_at": at,
            "updated_at": at,
            "confirmed_at": at,
            "email_normalized": customer_key if customer_id is None else "",
        }
        references = {} if customer_id is None else {"customer": customer_id}
        resolved = {"order_id": None, **redemption(target, f"imported-{meta_id}")}
        found.append(
            Converted(meta_id, values, references=references, resolved=resolved, table="postmeta")
        )
    context.resolve(COUPON_USE, found)
    context.report.counts_of("redemptions")["read"] += len(found)
    yield found
