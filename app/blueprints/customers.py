"""Customers: the endpoint table of the specification, section 4.2."""

from collections.abc import Mapping

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.bulk_requests import bulk_response
from app.api.etags import precondition, record_response, with_etag
from app.api.idempotency import idempotent
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import customers as customers_of
from app.api.responses import delete_response, json_response, page_response
from app.schemas import customers as schemas
from app.schemas.base import CountResponse, DeleteResponse
from app.schemas.examples import customers as examples
from app.schemas.queries import CustomerCountQuery, CustomerListQuery, RecordQuery
from app.services.customers import queries as customer_queries
from app.services.customers import writes as customers
from app.services.customers.queries import CustomerQuery

blp = Blueprint(
    "customers",
    __name__,
    url_prefix="/customers",
    description="Create, find, update and delete customer accounts.",
    extends_orders=True,
    reads_replicas=True,
)


def _body(customer: Mapping[str, object]) -> Body:
    return {"customer": customers_of().record(customer)}


init_app = blp.init_app


@blp.route("")
@blp.rights("shop_api_user_cannot_read_customers_count")
@blp.arguments(CustomerListQuery, location="query")
@blp.response(
    200, schemas.CustomerList, headers=PAGE_HEADERS, example={"customers": [examples.CUSTOMER]}
)
def list_customers(query: Query) -> Response:
    """List customers.

    Returns the accounts that match, by default those with the role `customer`, in the order of
    their registration. The list is empty if the user of the key cannot list users.
    `filter[limit]=-1` returns all accounts in one response.
    """
    serializer = customers_of(query)
    page = customer_queries.list_customers(
        current_principal(), CustomerQuery.of(query), serializer.columns
    )
    return page_response("customers", serializer.rows, page)


@blp.route("", methods=["POST"])
@blp.errors(
    "shop_api_missing_customer_data",
    "shop_api_user_cannot_create_customer",
    "shop_api_missing_customer_email",
    "registration-error-invalid-email",
    "registration-error-email-exists",
    "registration-error-invalid-username",
    "registration-error-username-exists",
    "shop_api_invalid_metadata",
)
@blp.arguments(schemas.CustomerCreateRequest, example={"customer": examples.NEW_CUSTOMER})
@idempotent
@blp.response(201, schemas.CustomerResponse, example={"customer": examples.CUSTOMER})
def create_customer(body: Body) -> Response:
    """Create a customer.

    Only `email` is required. Without a username, one is generated from the e-mail address. Without
    a password, the account has no usable password.
    """
    customer = customers.create_customer(current_principal(), body["customer"])
    return json_response(_body(customer), 201)


@blp.route("/count")
@blp.errors("shop_api_user_cannot_read_customers_count")
@blp.arguments(CustomerCountQuery, location="query")
@blp.response(200, CountResponse, example={"count": 1})
def count_customers(query: Query) -> Response:
    """Count customers.

    Returns the number of accounts that match.
    """
    number = customer_queries.count_customers(current_principal(), CustomerQuery.of(query))
    return json_response(number.body)


@blp.route("/<id:customer_id>")
@with_etag
@blp.errors(
    "shop_api_invalid_customer_id",
    "shop_api_invalid_customer",
    "shop_api_user_cannot_read_customer",
)
@blp.arguments(RecordQuery, location="query")
@blp.response(200, schemas.CustomerResponse, example={"customer": examples.CUSTOMER})
def get_customer(query: Query, customer_id: int) -> Response:
    """Retrieve a customer.

    Accounts with any role are found.
    """
    serializer = customers_of(query)
    row = customer_queries.get_customer(current_principal(), customer_id, serializer.columns)
    return record_response("customer", serializer, row)


@blp.route("/<id:customer_id>", methods=["PUT"])
@blp.errors_as(
    400,
    "shop_api_missing_customer_data",
    "shop_api_invalid_customer_id",
    "shop_api_invalid_customer",
    "shop_api_user_cannot_edit_customer",
    "shop_api_invalid_metadata",
)
@blp.errors("shop_api_precondition_failed")
@blp.arguments(schemas.CustomerUpdateRequest, example={"customer": examples.CUSTOMER_UPDATE})
@blp.response(200, schemas.CustomerResponse, example={"customer": examples.UPDATED_CUSTOMER})
def update_customer(body: Body, customer_id: int) -> Response:
    """Update a customer.

    Fields that are absent keep their values. An e-mail address that is invalid or belongs to
    another account is ignored. The username cannot be updated.
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

    Deletes the account permanently. Its orders remain and become guest orders.
    """
    customers.delete_customer(current_principal(), customer_id, precondition(_body))
    return delete_response("customer")


@blp.route("/email/<email:email>")
@with_etag
@blp.errors("shop_api_invalid_customer_email", "shop_api_user_cannot_read_customer")
@blp.arguments(RecordQuery, location="query")
@blp.response(200, schemas.CustomerResponse, example={"customer": examples.CUSTOMER})
def get_customer_by_email(query: Query, email: str) -> Response:
    """Retrieve a customer by e-mail address.

    Accounts with any role are found.
    """
    serializer = customers_of(query)
    row = customer_queries.get_customer_by_email(current_principal(), email, serializer.columns)
    return record_response("customer", serializer, row)


@blp.route("/bulk", methods=["POST", "PUT"])
@blp.rights("shop_api_user_cannot_create_customer", "shop_api_user_cannot_edit_customer")
@blp.status("bulk_created")
@blp.errors("shop_api_missing_customers_data", "shop_api_customers_request_entity_too_large")
@blp.arguments(schemas.CustomerBulkRequest, example={"customers": examples.CUSTOMER_ITEMS})
@idempotent
@blp.response(200, schemas.CustomerBulkResponse, example={"customers": examples.CUSTOMER_RESULTS})
def bulk_customers(body: Body) -> Response:
    """Create and update customers in bulk.

    An item with an `id` updates that customer; an item without an `id` creates one. The results
    are in the order of the items. An item that fails changes nothing and does not affect the
    others.
    """
    return bulk_response(
        "customer",
        body["customers"],
        create=schemas.CustomerCreate,
        update=schemas.CustomerUpdate,
        save=customers.save_customers,
        dump=customers_of().records,
    )
