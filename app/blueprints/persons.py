"""Persons: what the shop knows of them, and its erasure. Native only (people 3 to 5)."""

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.etags import precondition, with_etag
from app.api.idempotency import idempotent
from app.api.responses import json_response, streamed_response
from app.import_export.person_data import person_data
from app.schemas import persons as schemas
from app.schemas.examples import persons as examples
from app.services.persons import erasure

blp = Blueprint(
    "persons",
    __name__,
    url_prefix="/persons",
    description="Return or erase what is stored of a person.",
    always_strict=True,
    extends_orders=True,
)
init_app = blp.init_app

_UNKNOWN = ("shop_api_invalid_customer", "shop_api_invalid_order_id", "shop_api_invalid_person")


@blp.route("/data")
@blp.also_requires("customers", "orders")
@blp.errors(*_UNKNOWN, "shop_api_user_cannot_read_person")
@blp.arguments(schemas.PersonQuery, location="query")
@blp.response(200, schemas.PersonDataResponse, example={"person_data": examples.DATA})
def get_person_data(query: Query) -> Response:
    """Return what is stored of a person.

    Returns one JSON file, from one state of the database. A file without its closing brace is
    incomplete. Stored responses and responses of webhook receivers are left out.
    """
    response = streamed_response(person_data(current_principal(), query), "application/json")
    response.headers["Content-Disposition"] = 'attachment; filename="person-data.json"'
    response.headers["Cache-Control"] = "no-store"
    return response


@blp.route("/erasure")
@with_etag
@blp.also_requires("customers", "orders")
@blp.errors(*_UNKNOWN, "shop_api_user_cannot_erase_person")
@blp.arguments(schemas.PersonQuery, location="query")
@blp.response(200, schemas.ErasurePreview, example={"erasure": examples.PREVIEW})
def get_person_erasure(query: Query) -> Response:
    """Preview the erasure of a person.

    Returns what belongs to the person, and why it cannot be erased. People who share an address
    cannot be told apart.
    """
    return json_response({"erasure": erasure.preview(current_principal(), query)})


@blp.route("/erase", methods=["POST"])
@blp.also_requires("customers", "orders")
@blp.errors(
    "shop_api_missing_person_data",
    *_UNKNOWN,
    "shop_api_user_cannot_erase_person",
    "shop_api_precondition_failed",
    "shop_api_cannot_erase_person",
)
@blp.arguments(schemas.PersonRequest, example={"person": examples.PERSON})
@idempotent
@blp.response(200, schemas.ErasureResponse, example={"erasure": examples.ERASURE})
def erase_person(body: Body) -> Response:
    """Erase a person.

    Erases up to 200 orders, oldest first, and the account with the last ones. The sales remain:
    items, sums, taxes, country, state and the first 2 characters of the postcode. While `complete`
    is false, send the request again. With `If-Match`, nothing is erased if the preview has changed.
    """
    check = precondition(lambda preview: {"erasure": preview})
    return json_response({"erasure": erasure.erase(current_principal(), body["person"], check)})
