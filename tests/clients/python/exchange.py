"""What a user of the generated Python client does. Run by tests/openapi/test_clients.py, and type-checked."""

import os
from base64 import b64encode
from datetime import UTC, date, datetime
from typing import Any

from shop_client import AuthenticatedClient
from shop_client.api.coupons import (
    bulk_coupons,
    count_coupons,
    create_coupon,
    delete_coupon,
    get_coupon,
    get_coupon_by_code,
    list_coupons,
    update_coupon,
)
from shop_client.api.customers import create_customer, get_customer_by_email
from shop_client.api.orders import create_order, list_order_statuses
from shop_client.models import (
    BillingAddressCreate,
    BulkFailure,
    CountResponse,
    Coupon,
    CouponBulkItem,
    CouponBulkRequest,
    CouponBulkResponse,
    CouponCreate,
    CouponCreateRequest,
    CouponList,
    CouponResponse,
    CouponType,
    CouponUpdate,
    CouponUpdateRequest,
    Customer,
    CustomerCreate,
    CustomerCreateRequest,
    CustomerResponse,
    DeleteResponse,
    ErrorResponse,
    GuestCustomer,
    LineItemCreate,
    ListCouponsOrderby,
    OrderCreate,
    OrderCreateRequest,
    OrderResponse,
    OrderStatusList,
    SortOrder,
)
from shop_client.types import Response


def connect(consumer_key: str, consumer_secret: str) -> AuthenticatedClient:
    """Return a client of the service under test."""
    token = b64encode(f"{consumer_key}:{consumer_secret}".encode()).decode()
    return AuthenticatedClient(
        base_url=os.environ["SHOP_URL"],
        token=token,
        prefix="Basic",
        raise_on_unexpected_status=True,
    )


def create(client: AuthenticatedClient, coupon: CouponCreate) -> Coupon:
    """Create a coupon."""
    answer = create_coupon.sync_detailed(client=client, body=CouponCreateRequest(coupon=coupon))
    assert answer.status_code == 201
    assert isinstance(answer.parsed, CouponResponse)
    return answer.parsed.coupon


def all_codes(client: AuthenticatedClient) -> list[str]:
    """Return the codes of all coupons, by id, page by page."""
    codes: list[str] = []
    page = pages = 1
    while page <= pages:
        answer = list_coupons.sync_detailed(
            client=client, page=page, orderby=ListCouponsOrderby.ID, order=SortOrder.ASC
        )
        assert isinstance(answer.parsed, CouponList)
        assert len(answer.parsed.coupons) <= 2
        codes += [coupon.code for coupon in answer.parsed.coupons]
        pages = int(answer.headers["X-TotalPages"])
        page += 1
    assert len(codes) == int(answer.headers["X-Total"])
    return codes


def refused(answer: Response[Any], status: int, code: str, param: str | None = None) -> None:
    """Check an error: its status and its one entry, as typed values."""
    assert answer.status_code == status
    assert isinstance(answer.parsed, ErrorResponse)
    (entry,) = answer.parsed.errors
    assert entry.code == code, entry
    assert entry.message
    assert (entry.param or None) == param  # what is not there is UNSET, which is false


def coupons(client: AuthenticatedClient) -> None:
    """Create, read, filter, page, edit, bulk, delete."""
    summer = create(
        client,
        CouponCreate(
            code="Summer-2030",
            amount="15",
            usage_limit=100,
            expiry_date=date(2030, 12, 31),
            product_ids=[7, 12],
        ),
    )
    assert isinstance(summer.id, int)
    assert (summer.code, summer.type_, summer.amount) == ("summer-2030", "fixed_cart", "15.00")
    assert (summer.usage_limit, summer.usage_limit_per_user) == (100, None)
    assert summer.expiry_date == datetime(2030, 12, 31, tzinfo=UTC)
    assert summer.product_ids == [7, 12]
    assert isinstance(summer.created_at, datetime)
    # Only the code: the other arguments need no mention.
    for code in ("autumn", "winter"):
        assert create(client, CouponCreate(code=code)).amount == "0.00"
    spring = create(client, CouponCreate(code="spring", type_=CouponType.PERCENT))
    assert spring.type_ == "percent"

    found = get_coupon_by_code.sync(client=client, code="SUMMER-2030")
    assert isinstance(found, CouponResponse)
    assert found.coupon == summer

    listed = list_coupons.sync(client=client, q="summer", in_=str(summer.id))
    assert isinstance(listed, CouponList)
    assert listed.coupons == [summer]
    assert count_coupons.sync(client=client, q="summer") == CountResponse(count=1)
    assert all_codes(client) == ["summer-2030", "autumn", "winter", "spring"]

    edited = update_coupon.sync(
        summer.id, client=client, body=CouponUpdateRequest(coupon=CouponUpdate(amount="20"))
    )
    assert isinstance(edited, CouponResponse)
    # What the edit does not mention stays as it is.
    assert (edited.coupon.amount, edited.coupon.usage_limit) == ("20.00", 100)

    bulk = bulk_coupons.sync(
        client=client,
        body=CouponBulkRequest(
            coupons=[
                CouponBulkItem(code="fifth"),
                CouponBulkItem(code="AUTUMN"),
                CouponBulkItem(id=summer.id, usage_limit=50),
            ]
        ),
    )
    assert isinstance(bulk, CouponBulkResponse)
    fifth, taken, limited = bulk.coupons
    assert isinstance(fifth, Coupon)
    assert fifth.code == "fifth"
    assert isinstance(taken, BulkFailure)
    assert (taken.id, taken.error.code) == (0, "shop_api_coupon_code_already_exists")
    assert isinstance(limited, Coupon)
    assert (limited.id, limited.usage_limit) == (summer.id, 50)

    deleted = delete_coupon.sync(summer.id, client=client, force=True)
    assert deleted == DeleteResponse(message="Permanently deleted coupon")
    assert all_codes(client) == ["autumn", "winter", "spring", "fifth"]


def others(client: AuthenticatedClient) -> None:
    """Use what the other tags offer, once."""
    created = create_customer.sync(
        client=client,
        body=CustomerCreateRequest(
            customer=CustomerCreate(
                email="ada+shop@example.com",
                first_name="Ada",
                billing_address=BillingAddressCreate(city="London"),
            )
        ),
    )
    assert isinstance(created, CustomerResponse)
    read = get_customer_by_email.sync("ada+shop@example.com", client=client)
    assert isinstance(read, CustomerResponse)
    assert read.customer.id == created.customer.id
    for customer_id in (created.customer.id, 0):
        order = create_order.sync(
            client=client,
            body=OrderCreateRequest(
                order=OrderCreate(
                    customer_id=customer_id,
                    line_items=[LineItemCreate(name="Mug", quantity=2, price="4.00")],
                )
            ),
        )
        assert isinstance(order, OrderResponse)
        assert (order.order.total, order.order.line_items[0].quantity) == ("8.00", 2)
        if isinstance(order.order.customer, GuestCustomer):
            assert (order.order.customer.id, customer_id) == (0, 0)
        else:
            buyer: Customer = order.order.customer
            assert (buyer.id, buyer.username) == (customer_id, created.customer.username)
    statuses = list_order_statuses.sync(client=client)
    assert isinstance(statuses, OrderStatusList)
    assert statuses.order_statuses["completed"]


def errors(client: AuthenticatedClient) -> None:
    """Be refused in every way."""
    refused(
        create_coupon.sync_detailed(
            client=client, body=CouponCreateRequest(coupon=CouponCreate(code="Autumn"))
        ),
        400,
        "shop_api_coupon_code_already_exists",
    )
    refused(
        list_coupons.sync_detailed(client=client, page=0), 400, "shop_api_invalid_param", "page"
    )
    with connect("ck_nobody", "cs_nobody") as nobody:
        refused(list_coupons.sync_detailed(client=nobody), 401, "shop_api_authentication_error")
    refused(get_coupon.sync_detailed(999, client=client), 404, "shop_api_invalid_coupon_id")
    refused(
        bulk_coupons.sync_detailed(
            client=client, body=CouponBulkRequest(coupons=[CouponBulkItem(code="x")] * 4)
        ),
        413,
        "shop_api_coupons_request_entity_too_large",
    )
    refused(
        create_coupon.sync_detailed(
            client=client,
            body=CouponCreateRequest(coupon=CouponCreate(code="x", description="x" * 30_000)),
        ),
        413,
        "shop_api_request_entity_too_large",
    )


if __name__ == "__main__":
    with connect(os.environ["SHOP_CONSUMER_KEY"], os.environ["SHOP_CONSUMER_SECRET"]) as shop:
        coupons(shop)
        others(shop)
        errors(shop)
