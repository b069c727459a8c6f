"""Redemptions of orders: reserve, confirm and release uses of their coupons (redemptions 4)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, cast

from flask import current_app
from sqlalchemy import insert, update
from sqlalchemy.orm import Session

from app.catalog import TRASH, Change, RedemptionEffect, current_catalog
from app.conversions.text import coupon_code
from app.db.errors import TryAgain
from app.db.read_pool import Fetch
from app.db.records import Record, changed_columns, with_columns
from app.db.session import now, savepoint
from app.models import REDEMPTIONS
from app.models.campaign import is_limited
from app.models.order import Item, OrderRow
from app.models.redemption import RedemptionRow, RedemptionStatus, is_live
from app.services.campaigns.locks import Held
from app.services.common.erased import SELECT_USES, stored_uses
from app.services.coupons.customers import Customer, counted_customer, email_columns
from app.services.coupons.refusals import NOT_FOUND, CartSummary, CouponRefused, refused_for
from app.services.coupons.terms import FoundCoupon, coupons_by_code, coupons_by_id
from app.services.orders.items import COUPON_ID, EARLIER_REDEMPTIONS, OrderItems
from app.services.redemptions.campaign_numbers import (
    change_numbers,
    counted_amount,
    give_back_to_campaign,
)
from app.services.redemptions.campaigns import CampaignUse
from app.services.redemptions.changes import REDEEMED, count_use, expiries, use_change
from app.services.redemptions.changes import RELEASED as RELEASED_USE
from app.services.redemptions.slots import CouponSlot, require_use_left, take_slot
from app.services.redemptions.stored import is_of_order, update_redemption, uses_of


def redemptions_of(session: Session, order_id: int) -> Sequence[RedemptionRow]:
    """Return all redemptions of an order, the oldest first."""
    of_order = SELECT_USES.where(is_of_order(order_id)).order_by(REDEMPTIONS.c.id)
    return stored_uses(session.execute(of_order))


def redemptions_of_lines(
    lines: Sequence[Item], new: Sequence[Item], redemptions: Iterable[RedemptionRow]
) -> dict[int, RedemptionRow]:
    """Return the redemption of each coupon line that has one, by the ID of the line.

    A redemption has the code of its line, normalized (``use_code``). If a line is removed and its
    code is added again, the redemptions so far remain those of the removed line (redemptions 6).

    Args:
        lines: the coupon lines of an order.
        new: those that a change adds. This function sets their EARLIER_REDEMPTIONS.
        redemptions: all redemptions of the order, the oldest first.
    """
    added = {line["id"] for line in new}
    codes = {line["code"] for line in lines if line["id"] not in added}
    by_code: defaultdict[str, list[RedemptionRow]] = defaultdict(list)
    for redemption in redemptions:
        by_code[use_code(redemption["code"], codes)].append(redemption)
    for line in new:
        line[EARLIER_REDEMPTIONS] = len(by_code[use_code(line["code"], codes)])
    found = {
        line["id"]: by_code[use_code(line["code"], codes)][line[EARLIER_REDEMPTIONS] :]
        for line in lines
    }
    return {line_id: of_line[-1] for line_id, of_line in found.items() if of_line}


def use_code(code: str, codes: Collection[str]) -> str:
    """Return the code under which a line of an order and its redemptions are compared.

    Lines keep the code that was used, and redemptions have it in the form of this version.

    Args:
        code: of a line or a redemption.
        codes: those of the stored coupon lines. Two can have the same normalized code.
    """
    normalized = coupon_code(code)
    return code if normalized in codes else normalized


def coupons_of_lines(
    fetch: Fetch,
    lines: Sequence[Item],
    redemptions: Mapping[int, RedemptionRow],
    customer: Customer,
    order_id: int,
) -> dict[int, FoundCoupon]:
    """Return the coupon of each line that has one, by the ID of the line.

    Args:
        redemptions: the redemptions of the lines, by the ID of the line.
        order_id: the order, whose uses do not count against the customer.

    Returns:
        Published coupons, and the coupons in the trash that a redemption or a line identifies.
    """
    ids = {line["id"]: line[COUPON_ID] for line in lines if line[COUPON_ID] is not None}
    ids |= {line_id: redemption["coupon_id"] for line_id, redemption in redemptions.items()}
    codes = {line["id"]: line["code"] for line in lines if line["id"] not in ids}
    by_id = coupons_by_id(fetch, set(ids.values()) - {None}, customer, order_id)
    by_code = coupons_by_code(fetch, list(codes.values()), customer, order_id)
    found = {line_id: by_id.get(coupon_id) for line_id, coupon_id in ids.items()}
    found |= {line_id: by_code.get(code) for line_id, code in codes.items()}
    return {line_id: coupon for line_id, coupon in found.items() if coupon}


CONFIRMED, RESERVED, RELEASED = (
    RedemptionStatus.CONFIRMED,
    RedemptionStatus.RESERVED,
    RedemptionStatus.RELEASED,
)

_STATUS_OF_EFFECT = {
    RedemptionEffect.RESERVE: RESERVED,
    RedemptionEffect.CONFIRM: CONFIRMED,
    RedemptionEffect.RELEASE: RELEASED,
}
_INSERT = insert(REDEMPTIONS).returning(REDEMPTIONS.c.id)

HELD_USE = "held_use"
"""Detail of a coupon line in the trash: the status of the use that the trash released."""


@dataclass(frozen=True, slots=True)
class CouponPlan:
    """Changes to coupon uses by a create or an update of an order.

    Attributes:
        before: the stored order; None for a new order.
        customer: the customer whose uses are counted.
        coupons: the coupons of the coupon lines, by the ID of the line, published or not.
        redemptions: the redemptions of the coupon lines, by the ID of the line.
        removed: live redemptions of removed lines.
        held: the locked campaigns of the coupons and of their uses.
    """

    before: OrderRow | None
    after: Mapping[str, Any]
    items: OrderItems
    customer: Customer
    coupons: dict[int, FoundCoupon]
    redemptions: Mapping[int, RedemptionRow]
    removed: Sequence[RedemptionRow]
    held: Held

    @property
    def in_budget(self) -> bool:
        """Return whether the currency of the order is that of the budgets of campaigns."""
        return bool(self.after["currency"] == current_app.config["SHOP_CURRENCY"])

    @property
    def changes_currency(self) -> bool:
        """Return whether a stored order gets another currency."""
        return self.before is not None and self.before["currency"] != self.after["currency"]

    def cart(self) -> CartSummary:
        """Return the customer and the sum of the order, for the refusal of a code."""
        cents = sum(item["subtotal"] for item in self.items.lists["line_items"])
        total = Decimal(cents).scaleb(-2)
        customer_id, email = self.after["customer_id"], self.after["billing_email"]
        return CartSummary(customer_id, email, total, self.after["currency"])

    def write(self, session: Session, order_id: int) -> list[Change]:
        """Reserve, confirm and release the uses.

        Returns:
            The changes of the coupons, to be completed by ``notify_with_coupons``.

        Raises:
            ShopError: a limit is reached, with the reasons. Nothing is written in this case.
        """
        lines = self.items.lists["coupon_lines"]
        # If a coupon is rejected, undo the changes for the coupons before it.
        several = len(lines) + len(self.removed) > 1
        counted = any(map(is_limited, self.held.values()))
        with (
            refused_for(self.cart),
            savepoint(session) if several or counted else nullcontext(),
        ):
            changes: list[Change] = []
            for redemption in self.removed:
                changes += _release(session, self.held, redemption)
            for line in lines if self.redemptions else ():  # so that it is left for other lines
                self._give_back_difference(session, line)
            for line in lines:
                changes += self._write_line(session, order_id, line)
            return changes

    def _write_line(self, session: Session, order_id: int, line: Item) -> list[Change]:
        redemption = self.redemptions.get(line["id"])
        live = redemption if redemption and is_live(redemption) else None
        status = self.status_of(line)
        if status == RELEASED:
            return _release(session, self.held, live) if live else []
        if live:
            return self._keep(session, order_id, line, live, status or live["status"])
        if status:
            return self._take(session, order_id, line, redemption, status)
        return []

    def status_of(self, line: Item) -> str | None:
        """Return the new status of a line's use, or None to leave it unchanged."""
        is_new = self.is_new(line)
        if self.before and self.before["status"] == self.after["status"] and not is_new:
            return None
        if self.after["status"] == TRASH:  # changed in the trash: a restore takes the uses
            return RELEASED
        effects = current_catalog().redemption_effects
        effect = effects.get(self.after["status"], RedemptionEffect.UNCHANGED)
        if effect != RedemptionEffect.UNCHANGED:
            return _STATUS_OF_EFFECT[effect]
        if is_new:  # a use recorded in such an order is confirmed (redemptions 6)
            return CONFIRMED
        # A restored order takes the use again that the trash released.
        was_in_trash = self.before is not None and self.before["status"] == TRASH
        return line.get(HELD_USE) if was_in_trash else None

    def is_new(self, line: Item) -> bool:
        """Return whether this change adds the coupon to the order."""
        return self.before is None or all(
            line["id"] != earlier["id"] for earlier in self.before["coupon_lines"]
        )

    def _keep(
        self, session: Session, order_id: int, line: Item, redemption: RedemptionRow, status: str
    ) -> list[Change]:
        """Change the status of a live use, and update its customer and amount."""
        columns = self._columns(line, redemption)
        changes: list[Change] = []
        if (columns["customer_id"], columns["email_normalized"]) != (
            redemption["customer_id"],
            redemption["email_normalized"],
        ):
            expired = require_use_left(
                session, redemption["coupon_id"], self.customer, order_id, self.place(line)
            )
            changes = expiries(expired)
            self._change_of_campaign(line, redemption).take(
                session, redemption["campaign_id"], self.customer
            )
        self._change_amount(session, line, redemption)
        if status != redemption["status"]:
            confirmed = status == CONFIRMED
            usage, reserved = (1, -int(redemption["holds_slot"])) if confirmed else (-1, 1)
            timestamp = now()
            columns |= {
                "status": status,
                "holds_slot": not confirmed,
                "updated_at": timestamp,
                "confirmed_at": timestamp if confirmed else None,
            }
            after = with_columns(redemption, columns)
            changes += count_use(session, REDEEMED, after, usage=usage, reserved=reserved)
        if changed := changed_columns(redemption, columns):
            _change(session, redemption, changed)
        return changes

    def _use_of_campaign(
        self, line: Item, earlier: RedemptionRow | None, amount: Decimal
    ) -> CampaignUse:
        """Return a new use of a campaign, or an earlier one that is taken again."""
        coupon = self.coupons.get(line["id"])
        return CampaignUse(
            held=self.held,
            code=line["code"],
            param=self.place(line),
            amount=amount,
            in_budget=self.in_budget,
            active=line["applied"] and self.is_new(line),
            own_id=earlier["id"] if earlier else 0,
            terms=coupon.terms if coupon else None,
        )

    def _change_of_campaign(
        self, line: Item, redemption: RedemptionRow, amount: Decimal | None = None
    ) -> CampaignUse:
        """Return a change of a use of a campaign. Its own use does not count."""
        return CampaignUse(
            held=self.held,
            code=line["code"],
            param=self.place(line),
            amount=amount,
            is_new=False,
            in_budget=not self.changes_currency and (self.in_budget or not amount),
            active=False,
            own_id=redemption["id"],
        )

    def _change_amount(self, session: Session, line: Item, redemption: RedemptionRow) -> None:
        """Add the increase of a discount to the campaign of a use, within its budget."""
        more = _increase(line, redemption)
        if more > 0 or self.changes_currency:
            use = self._change_of_campaign(line, redemption, max(more, Decimal(0)))
            use.take(session, redemption["campaign_id"], None)

    def _give_back_difference(self, session: Session, line: Item) -> None:
        """Subtract the decrease of a discount from the campaign of a use that the line keeps."""
        redemption = self.redemptions.get(line["id"])
        if redemption and is_live(redemption) and self.status_of(line) != RELEASED:
            less = _increase(line, redemption)
            if less < 0:
                change_numbers(session, self.held, redemption["campaign_id"], 0, less)

    def _take(
        self,
        session: Session,
        order_id: int,
        line: Item,
        earlier: RedemptionRow | None,
        status: str,
    ) -> list[Change]:
        """Add a use, or take an earlier one again (redemptions 6).

        An earlier use is taken again within the limits, also of a coupon in the trash. A
        permanently deleted coupon has no limit. A recorded code that matched no coupon is kept
        without a use.
        """
        coupon = self.coupons.get(line["id"])
        if coupon is None and earlier is None:
            # Without a use, the discount would be given any number of times.
            if line["applied"] or line[COUPON_ID] is not None:
                raise CouponRefused(line["code"], [NOT_FOUND], self.place(line))
            return []
        columns = {**self._columns(line, earlier), "status": status, "holds_slot": False}
        slot: CouponSlot | None = None
        customer = counted_customer(self.customer, earlier) if earlier else self.customer
        campaign_id = coupon.campaign_id if coupon else earlier and earlier["campaign_id"]
        if campaign_id is not None:
            use = self._use_of_campaign(line, earlier, columns["amount"])
            use.take(session, campaign_id, customer)
        columns["campaign_id"] = campaign_id
        if coupon:
            slot = take_slot(
                session,
                coupon,
                customer,
                confirmed=status == CONFIRMED,
                published=earlier is None and (line["applied"] or not self.is_new(line)),
                active=line["applied"] and self.is_new(line),
                own_order_id=order_id,
                param=self.place(line),
            )
            columns |= {"coupon_id": coupon.id, "holds_slot": slot.is_counted}
        columns["updated_at"] = self.after["updated_at"]
        redemption = _store(session, order_id, line, earlier, columns)
        if slot is None:
            return []
        used = use_change(REDEEMED, redemption, usage=slot.uncounted, coupon=slot.coupon)
        return expiries(slot.expired) + used

    def _columns(self, line: Item, stored: RedemptionRow | None) -> Record:
        return {
            "customer_id": self.customer.customer_id,
            **email_columns(self.customer.email, stored, self.customer.customer_id),
            "amount": _amount_of(line),
        }

    def place(self, line: Item) -> str:
        """Return the location of a line's code in the request."""
        place = self.items.places.get(line["id"])
        return f"{place}.code" if place else "order.coupon_lines"


def _store(
    session: Session,
    order_id: int,
    line: Item,
    earlier: RedemptionRow | None,
    columns: Mapping[str, object],
) -> RedemptionRow:
    """Write columns to an earlier use of a line, or to a new one, and return it."""
    if earlier:
        return update_redemption(session, earlier, **columns)
    timestamp = columns["updated_at"]
    columns = {
        **columns,
        "confirmed_at": timestamp if columns["status"] == CONFIRMED else None,
        "code": coupon_code(line["code"]),
        "reference": f"order-{order_id}",
        "order_id": order_id,
        "created_at": timestamp,
        "expires_at": None,
    }
    new_id = session.connection().execute(_INSERT, columns).scalar()
    return cast("RedemptionRow", {**columns, "id": new_id})


def release_uses(
    session: Session, order_id: int, timestamp: datetime, held: Held
) -> tuple[list[Change], dict[str, str]]:
    """Release the uses of an order that is moved to the trash or deleted.

    Returns:
        The changes of the coupons, to be completed by ``notify_with_coupons``, and the status that
        each released use had, by its normalized code.
    """
    changes: list[Change] = []
    released: dict[str, str] = {}
    for redemption in redemptions_of(session, order_id):
        if is_live(redemption):
            changes += _release(session, held, redemption, timestamp)
            released[coupon_code(redemption["code"])] = redemption["status"]
    return changes, released


def with_held_uses(order: OrderRow, released: Mapping[str, str]) -> dict[str, Item]:
    """Return the ``item_details`` of an order in the trash, which name the uses to take again.

    The status of the order is not always sufficient: an order that is ``refunded`` can have a
    confirmed use, a reserved use or none.

    Args:
        order: the order before the trash.
        released: the status of each released use, by its normalized code.
    """
    details = dict(order["item_details"] or {})
    for line in order["coupon_lines"]:
        kept = {k: v for k, v in details.get(str(line["id"]), {}).items() if k != HELD_USE}
        code = coupon_code(line["code"])
        held = {HELD_USE: released[code]} if code in released else {}
        details[str(line["id"])] = kept | held
    return details


def _amount_of(line: Item) -> Decimal:
    return Decimal(line["amount"]).scaleb(-2)


def _increase(line: Item, redemption: RedemptionRow) -> Decimal:
    """Return what the discount of a line adds to the campaign of its use; negative: gives back."""
    return counted_amount(_amount_of(line)) - counted_amount(redemption["amount"])


def _release(
    session: Session, held: Held, redemption: RedemptionRow, timestamp: datetime | None = None
) -> list[Change]:
    give_back_to_campaign(session, held, redemption)
    usage, reserved = uses_of(redemption)
    released = {
        "status": RELEASED,
        "holds_slot": False,
        "updated_at": timestamp or now(),
        "confirmed_at": None,
    }
    after = with_columns(redemption, released)
    change = count_use(session, RELEASED_USE, after, usage=-usage, reserved=-reserved)
    _change(session, redemption, released)
    return change


def _change(session: Session, redemption: RedemptionRow, columns: Mapping[str, object]) -> None:
    """Write columns of a live use.

    Raises:
        TryAgain: its coupon has got a limit since it was read, and counts the reservation.
    """
    this = (REDEMPTIONS.c.id == redemption["id"]) & (
        REDEMPTIONS.c.holds_slot == redemption["holds_slot"]
    )
    written = session.connection().execute(update(REDEMPTIONS).where(this).values(columns))
    if not written.rowcount:
        raise TryAgain
