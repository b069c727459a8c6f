"""Conditions of coupons: an evaluation, an order or a reservation is rejected for the right reasons."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from qa.histories.accounts import key_of
from qa.histories.generator import CONDITIONS
from qa.histories.history import Operation, Segment, Violation

NAME = "conditions"
KINDS = {"evaluate", "create_order", "reserve"}


def check_conditions(segment: Segment) -> list[Violation]:
    """Return the violations in the responses to requests with coupons that have conditions."""
    found = []
    for operation in segment.operations:
        codes = CONDITIONS.keys() & set(operation.args.get("codes") or [operation.args.get("code")])
        is_legacy = operation.path.startswith("/wc-api")  # applies recorded amounts
        if operation.kind not in KINDS or not codes or not operation.is_done or is_legacy:
            continue
        if operation.kind == "reserve" and operation.status != 201:
            continue  # returns the reservation that the reference has
        shown = operation.response.get("evaluation")
        given = {
            each["code"]: {reason["code"] for reason in each["reasons"]}
            for each in (shown or {"coupons": ()})["coupons"]
        }
        others = [code for code, reasons in given.items() if not reasons] if shown else None
        for code in codes:
            expected = _reasons(operation, code, others)
            reasons = given.get(code, set())
            if expected is not None and reasons != expected:
                text = f"{code} has the reasons {sorted(reasons)}, and not {sorted(expected)}"
                found.append(Violation(NAME, text, [operation]))
    return found


def _reasons(operation: Operation, code: str, applicable: list[str] | None) -> set[str] | None:
    """Return why a coupon is not applicable, or None if this is not known.

    Args:
        applicable: the codes that an evaluation has found applicable; None for an order, which
            applies all of its coupons.
    """
    conditions = CONDITIONS[code]
    found = {"expired"} if "expiry_date" in conditions else set()
    emails = conditions.get("customer_emails")
    if emails and operation.args["customer_id"]:
        return None  # depends on the addresses of the account at that moment
    if emails and key_of(operation.args["email"]) not in emails:
        found.add("email_not_allowed")
    if operation.kind == "reserve":
        return found  # without a cart
    codes = operation.args["codes"]
    before = codes[: codes.index(code)] if applicable is None else applicable
    if conditions.get("individual_use") and set(before) & set(codes[: codes.index(code)]):
        found.add("individual_use")
    return found | _reasons_of_cart(conditions, operation.body)


def _reasons_of_cart(conditions: dict[str, Any], body: dict[str, Any]) -> set[str]:
    items = body["cart"]["items"] if "cart" in body else body["order"]["line_items"]
    subtotal = sum((Decimal(each["price"]) * each["quantity"] for each in items), Decimal(0))
    found = set()
    if subtotal < Decimal(str(conditions.get("minimum_amount", 0))):
        found.add("minimum_amount")
    if subtotal > Decimal(str(conditions.get("maximum_amount", subtotal))):
        found.add("maximum_amount")
    wanted = conditions.get("product_ids")
    if wanted and not any(each["product_id"] in wanted for each in items):
        found.add("product_not_included")
    return found
