"""Customers: the endpoint table of the specification, section 4.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Flask, Response, current_app

from app.api.authentication import current_principal
from app.api.etags import precondition, with_etag
from app.api.idempotency import idempotent
from app.api.openapi import PAGE_HEADERS
from app.api.order_extensions import OrderView
from app.api.request_parser import item_loader
from app.api.responses import bulk_response, json_response, page_response
from app.api.serializers import Serializer
from app.api.smorest import Api, Blueprint
from app.api.versions import current_api_version
from app.schemas import examples
from app.schemas.customers import (
    CustomerBulkRequest,
    CustomerBulkResponse,
    CustomerCreate,
    CustomerCreateRequest,
    CustomerList,
    CustomerResponse,
    CustomerSchema,
    CustomerUpdate,
    CustomerUpdateRequest,
)
from app.schemas.envelope import CountResponse, DeleteResponse
from app.schemas.orders import DownloadList, DownloadSchema, OrderList
from app.schemas.queries import CustomerCountQuery, CustomerListQuery, ReadQuery
from app.services import bulk, customer_queries, customers, order_queries
from app.services.customer_statistics import COLUMNS

Query = dict[str, Any]
Body = dict[str, Any]

CUSTOMER = Serializer(CustomerSchema, COLUMNS)
DOWNLOAD = Serializer(DownloadSchema, order_queries.DOWNLOAD_COLUMNS)

blp = Blueprint("customers", __name__, url_prefix="/customers", description="Customer accounts.")


def _body(customer: Mapping[str, Any]) -> Body:
    return {"customer": CUSTOMER.of(current_api_version().schemas).record(customer)}


def init_app(app: Flask, api: Api) -> None:  # noqa: ARG001  # the plugin door's signature
    """Register the customer routes."""
    api.register_blueprint(blp)


@blp.route("")
@blp.arguments(CustomerListQuery, location="query")
@blp.response(200, CustomerList, headers=PAGE_HEADERS, example={"customers": [examples.CUSTOMER]})
def list_customers(query: Query) -> Response:
    """List customers.

    The users with a role, by registration. The list is empty for a caller who may not list users.
    `filter[limit]=-1` answers all of them, written as they are read.
    """
    view = CUSTOMER.of(current_api_version().schemas).only(query["selection"])
    size = current_app.config["SHOP_PAGE_SIZE"]
    page = customer_queries.list_customers(current_principal(), query, view.columns, size)
    return page_response("customers", view.rows, page)


@blp.route("", methods=["POST"])
@blp.errors(
    "shop_api_missing_customer_data",
    "shop_api_user_cannot_create_customer",
    "shop_api_missing_customer_email",
    "registration-error-invalid-email",
    "registration-error-email-exists",
    "registration-error-invalid-username",
    "registration-error-username-exists",
)
@blp.arguments(CustomerCreateRequest, example={"customer": examples.NEW_CUSTOMER})
@idempotent
@blp.response(201, CustomerResponse, example={"customer": examples.CUSTOMER})
def create_customer(body: Body) -> Response:
    """Create a customer.

    Only `email` is required. Without a username one is made of the e-mail address; without a
    password none opens the account.
    """
    customer = customers.create_customer(current_principal(), body["customer"])
    return json_response(_body(customer), 201)


@blp.route("/count")
@blp.errors("shop_api_user_cannot_read_customers_count")
@blp.arguments(CustomerCountQuery, location="query")
@blp.response(200, CountResponse, example={"count": 1})
def count_customers(query: Query) -> Response:
    """Count customers.

    How many users match the filter.
    """
    return json_response({"count": customer_queries.count_customers(current_principal(), query)})


@blp.route("/<id:customer_id>")
@with_etag
@blp.errors(
    "shop_api_invalid_customer_id",
    "shop_api_invalid_customer",
    "shop_api_user_cannot_read_customer",
)
@blp.arguments(ReadQuery, location="query")
@blp.response(200, CustomerResponse, example={"customer": examples.CUSTOMER})
def get_customer(query: Query, customer_id: int) -> Response:
    """Read a customer by its id.

    Any user account is found, whatever its roles.
    """
    view = CUSTOMER.of(current_api_version().schemas).only(query["selection"])
    row = customer_queries.get_customer(current_principal(), customer_id, view.columns)
    return json_response({"customer": view.row(row)})


@blp.route("/<id:customer_id>", methods=["PUT"])
@blp.errors_as(
    400,
    "shop_api_missing_customer_data",
    "shop_api_invalid_customer_id",
    "shop_api_invalid_customer",
    "shop_api_user_cannot_edit_customer",
)
@blp.errors("shop_api_precondition_failed")
@blp.arguments(CustomerUpdateRequest, example={"customer": examples.CUSTOMER_UPDATE})
@blp.response(200, CustomerResponse, example={"customer": examples.UPDATED_CUSTOMER})
def update_customer(body: Body, customer_id: int) -> Response:
    """Edit a customer.

    Only supplied fields change; `null` is not supplied. An e-mail address that is not valid or
    belongs to another account leaves the stored one as it is. The username never changes.
    """
    customer = customers.update_customer(
        current_principal(), customer_id, body["customer"], precondition(_body)
    )
    return json_response(_body(customer))


@blp.route("/<id:customer_id>", methods=["DELETE"])
@blp.errors(
    "shop_api_invalid_customer_id",
    "shop_api_invalid_customer",
    "shop_api_user_cannot_delete_customer",
    "shop_api_cannot_delete_customer",
    "shop_api_precondition_failed",
)
@blp.response(200, DeleteResponse, example={"message": "Permanently deleted customer"})
def delete_customer(customer_id: int) -> Response:
    """Delete a customer.

    The account is removed for good. Its orders stay and become guest orders.
    """
    customers.delete_customer(current_principal(), customer_id, precondition(_body))
    return json_response({"message": "Permanently deleted customer"})


@blp.route("/email/<email:email>")
@with_etag
@blp.errors("shop_api_invalid_customer_email", "shop_api_user_cannot_read_customer")
@blp.arguments(ReadQuery, location="query")
@blp.response(200, CustomerResponse, example={"customer": examples.CUSTOMER})
def get_customer_by_email(query: Query, email: str) -> Response:
    """Read a customer by its e-mail address, in any case.

    Any user account is found, whatever its roles.
    """
    view = CUSTOMER.of(current_api_version().schemas).only(query["selection"])
    row = customer_queries.get_customer_by_email(current_principal(), email, view.columns)
    return json_response({"customer": view.row(row)})


@blp.route("/<id:customer_id>/orders")
@blp.errors(
    "shop_api_invalid_customer_id",
    "shop_api_invalid_customer",
    "shop_api_user_cannot_read_customer",
)
@blp.arguments(ReadQuery, location="query")
@blp.response(200, OrderList, example={"orders": [examples.ORDER]})
def list_customer_orders(query: Query, customer_id: int) -> Response:
    """List the orders of a customer, oldest first.

    Each with its customer; an empty list when there are none.
    """
    view = OrderView(query["selection"])
    rows = order_queries.orders_of_customer(current_principal(), customer_id, view.columns)
    return json_response({"orders": view.rows(rows)})


@blp.route("/<id:customer_id>/downloads")
@blp.errors(
    "shop_api_invalid_customer_id",
    "shop_api_invalid_customer",
    "shop_api_user_cannot_read_customer",
)
@blp.arguments(ReadQuery, location="query")
@blp.response(200, DownloadList, example={"downloads": {"1": examples.DOWNLOAD}})
def list_customer_downloads(query: Query, customer_id: int) -> Response:
    """List what a customer may download now, by the id of the permission.

    Downloads of orders that are processing or completed, as long as any remain and access has not
    expired.
    """
    view = DOWNLOAD.only(query["selection"])
    rows = order_queries.downloads_of_customer(current_principal(), customer_id, view.columns)
    downloads = {key: view.row(row) for key, row in rows.items()}
    in_a_list = DownloadList in current_api_version().schemas
    return json_response({"downloads": [*downloads.values()] if in_a_list else downloads})


@blp.route("/bulk", methods=["POST", "PUT"])
@blp.status("bulk_created")
@blp.errors("shop_api_missing_customers_data", "shop_api_customers_request_entity_too_large")
@blp.arguments(CustomerBulkRequest, example={"customers": examples.CUSTOMER_ITEMS})
@idempotent
@blp.response(200, CustomerBulkResponse, example={"customers": examples.CUSTOMER_RESULTS})
def bulk_customers(body: Body) -> Response:
    """Create and edit customers in bulk.

    An item with an `id` is an edit, one without is a create. BulkResult stand in the order of the
    items; one that fails spoils only itself and says why in its result.
    """
    results = bulk.run(
        body["customers"],
        limit=current_app.config["SHOP_BULK_LIMIT"],
        too_large="shop_api_customers_request_entity_too_large",
        invalid_id="shop_api_invalid_customer_id",
        load=item_loader(CustomerCreate, CustomerUpdate),
        save=lambda drafts: customers.save_customers(current_principal(), drafts),
        dump=CUSTOMER.of(current_api_version().schemas).record,
        name=current_api_version().translate,
    )
    return bulk_response("customers", results)
