"""Merging accounts, and claiming orders of guests, natively only (people 6)."""

from collections.abc import Mapping
from typing import Any

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.etags import precondition, with_etag
from app.api.idempotency import idempotent
from app.api.representations import customers as customers_of
from app.api.responses import json_response
from app.schemas import persons as schemas
from app.schemas.customers import CustomerResponse
from app.schemas.examples import customers as examples
from app.services.persons.claims import claim_orders, preview_claim
from app.services.persons.merging import merge_customers, preview_merge

TAGS = ["customers"]
_OF_CUSTOMER = (
    "shop_api_invalid_customer_id",
    "shop_api_invalid_customer",
    "shop_api_user_cannot_edit_customer",
)

blp = Blueprint(
    "customer_merges", __name__, url_prefix="/customers", extends_orders=True, always_strict=True
)
init_app = blp.init_app


def _preview(preview: Mapping[str, Any]) -> Body:
    return {"merge": {**preview, "customer": customers_of().record(preview["customer"])}}


@blp.route("/<id:customer_id>/merge", tags=TAGS)
@blp.also_requires("orders")
@with_etag
@blp.errors(*_OF_CUSTOMER)
@blp.errors_as(400, "shop_api_invalid_customer_id")
@blp.arguments(schemas.MergeQuery, location="query")
@blp.response(200, schemas.MergeResponse, example={"merge": examples.MERGE})
def get_customer_merge(query: Query, customer_id: int) -> Response:
    """Preview a merge of two accounts.

    Returns what the account in the path would get from the account `customer_id`, which would be
    removed, and the reasons if that is not possible.
    """
    preview = preview_merge(current_principal(), customer_id, query["customer_id"])
    return json_response(_preview(preview))


@blp.route("/<id:customer_id>/merge", methods=["POST"], tags=TAGS)
@blp.also_requires("orders")
@blp.errors(
    "shop_api_missing_merge_data",
    *_OF_CUSTOMER,
    "shop_api_precondition_failed",
    "shop_api_cannot_merge_customers",
)
@blp.errors_as(400, "shop_api_invalid_customer_id")
@blp.arguments(schemas.MergeRequest, example={"merge": examples.NEW_MERGE})
@idempotent
@blp.response(200, CustomerResponse, example={"customer": examples.CUSTOMER})
def merge_customer(body: Body, customer_id: int) -> Response:
    """Merge an account into another one.

    Moves the orders, the uses of coupons and the metadata of the account `customer_id` to the
    account in the path, and removes it. The removed ID and e-mail address are remembered, so that
    limits per customer count the uses of both accounts. A merge cannot be undone.
    """
    customer = merge_customers(
        current_principal(), customer_id, body["merge"]["customer_id"], precondition(_preview)
    )
    return json_response({"customer": customers_of().record(customer)})


@blp.route("/<id:customer_id>/claim", tags=TAGS)
@blp.also_requires("orders")
@blp.errors(*_OF_CUSTOMER)
@blp.response(200, schemas.ClaimResponse, example={"claim": examples.CLAIM})
def get_customer_claim(customer_id: int) -> Response:
    """List the orders of guests that a customer can claim.

    These are the orders of guests whose billing e-mail address is that of the account, or of an
    account that was merged into it. The billing e-mail address of the account does not count.
    """
    return json_response({"claim": preview_claim(current_principal(), customer_id)})


@blp.route("/<id:customer_id>/claim", methods=["POST"], tags=TAGS)
@blp.also_requires("orders")
@blp.errors("shop_api_missing_claim_data", *_OF_CUSTOMER, "shop_api_invalid_order_id")
@blp.errors_as(400, "shop_api_invalid_order_id")
@blp.arguments(schemas.ClaimRequest, example={"claim": examples.NEW_CLAIM})
@idempotent
@blp.response(200, schemas.ClaimResultResponse, example={"claim": examples.CLAIMED})
def claim_customer_orders(body: Body, customer_id: int) -> Response:
    """Assign orders of guests to a customer.

    Claims all orders that the customer can claim, or those in `order_ids`, with their uses of
    coupons, up to 1,000 per request. Confirm that the address belongs to the customer first. Each
    order has an event that can be undone.
    """
    order_ids = body["claim"]["order_ids"]
    return json_response({"claim": claim_orders(current_principal(), customer_id, order_ids)})
