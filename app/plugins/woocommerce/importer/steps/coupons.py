"""The import steps of coupons and of the uses that coupons store."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from app.conversions.numbers import whole_number
from app.db.search import LONG, email_key
from app.models.coupon import CouponStatus
from app.plugins.woocommerce.importer.context import PAGE, ImportContext, redemption
from app.plugins.woocommerce.importer.convert.accounts import EPOCH
from app.plugins.woocommerce.importer.convert.converted import Converted
from app.plugins.woocommerce.importer.convert.coupons import STATUSES, code_of, coupon, into_trash
from app.plugins.woocommerce.importer.source.staging import Pages


def coupons(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert coupons, published or in the trash."""
    metas = context.staging.meta_rows("postmeta", list(page))

    def convert(post_id: int) -> Converted:
        return coupon(
            post_id,
            page[post_id][-1],
            metas.get(post_id, []),
            context.source.clock,
            context.catalog.coupon_types.__contains__,
            metadata=context.metadata,
        )

    found = context.converted("coupons", "posts", page, convert)
    meant = context.index.coupons_of(each.values["code"] for each in found)
    authors = context.targets("customer", found, "author")
    for each in found:
        newest = meant[each.values["code"]]
        if each.values["status"] == CouponStatus.PUBLISHED and newest != each.source_id:
            is_older = page[each.source_id][-1][1] == "publish"
            other = "newer coupon" if is_older else "coupon"
            into_trash(each, f"the {other} {newest} has the same code")
        each.resolved["author_id"] = authors.get(each.references.get("author", 0))
    yield found


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
    for page in context.staging.pages("used_by", PAGE):
        context.index.add_stored_uses(
            [
                (coupon_id, email_key(text) if whole_number(text) is None else text, meta_id)
                for coupon_id, rows in page.items()
                for meta_id, value in rows
                if (text := (value or "").replace("\0", "").strip())
            ]
        )
    return sum(map(len, context.index.uses_beyond_orders()))


def redemptions(
    context: ImportContext, uses: Sequence[tuple[int, str, int]]
) -> Iterator[list[Converted]]:
    """Convert the uses that ``count_redemptions`` has counted."""
    targets = context.writer.records.targets("coupon", [use[0] for use in uses])
    accounts = context.writer.records.targets(
        "customer", [id_ for use in uses if (id_ := whole_number(use[1])) is not None]
    )
    rows = context.staging.one_by_id("posts:shop_coupon", list({use[0] for use in uses}))
    found = []
    for coupon_id, customer_key, meta_id in uses:
        if (target := targets.get(coupon_id)) is None:
            continue
        customer_id = whole_number(customer_key)
        code, at = _coupon_of(context, rows[coupon_id])
        is_address = customer_id is None and not customer_key.startswith(LONG)
        email = customer_key if is_address else ""
        values = {
            "code": code,
            "email": email,
            "amount": None,
            "status": "confirmed",
            "created_at": at,
            "updated_at": at,
            "confirmed_at": at,
            "email_normalized": customer_key if customer_id is None else "",
        }
        account = None if customer_id is None else accounts.get(customer_id)
        references = {} if customer_id is None else {"customer": customer_id}
        resolved = redemption(target, account, None, f"imported-{meta_id}")
        found.append(
            Converted(meta_id, "postmeta", values, references=references, resolved=resolved)
        )
    context.report.counts_of("redemptions").read += len(found)
    yield found


def _coupon_of(context: ImportContext, row: Sequence[Any]) -> tuple[str, datetime]:
    _, _, title, _, _, local, gmt, modified_local, modified, _ = row
    clock = context.source.clock
    return code_of(title), clock.utc(modified, modified_local) or clock.utc(gmt, local) or EPOCH
