"""API keys: list, create, update, rotate and revoke, natively only (decisions 2)."""

from collections.abc import Mapping

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.idempotency import idempotent_with_secret
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import API_KEY
from app.api.responses import json_response, page_response
from app.schemas import api_keys as schemas
from app.schemas.base import DeleteResponse
from app.schemas.examples import api_keys as examples
from app.schemas.queries import ReadQuery
from app.services.api_keys import queries as api_key_queries
from app.services.api_keys import writes as api_keys
from app.services.api_keys.queries import KeyQuery

SECRETS = ("consumer_key", "consumer_secret")

blp = Blueprint(
    "api_keys",
    __name__,
    url_prefix="/keys",
    description="Create, list, update, rotate and revoke API keys.",
    always_strict=True,
    extends_orders=True,
)


def _new_key(key: Mapping[str, object], status: int = 200) -> Response:
    return json_response(
        {"key": API_KEY.record(key) | {name: key[name] for name in SECRETS}}, status
    )


def _require_again(response: Body) -> None:
    api_keys.require_new_key_again(current_principal(), response["key"]["id"])


def _require_rotated_again(response: Body) -> None:
    api_keys.require_rotated_key_again(current_principal(), response["key"]["id"])


init_app = blp.init_app


@blp.route("")
@blp.arguments(schemas.ApiKeyListQuery, location="query")
@blp.response(200, schemas.ApiKeyList, headers=PAGE_HEADERS, example={"keys": [examples.API_KEY]})
def list_api_keys(query: Query) -> Response:
    """List API keys.

    Returns all keys, newest first. A caller without `manage_api_keys` gets only their own keys.
    """
    serializer = API_KEY.only(query["selection"])
    page = api_key_queries.list_keys(current_principal(), KeyQuery.of(query), serializer.columns)
    return page_response("keys", serializer.rows, page)


@blp.route("", methods=["POST"])
@blp.errors(
    "shop_api_missing_key_data",
    "shop_api_user_cannot_create_key",
    "shop_api_insufficient_key_rights",
    "shop_api_user_cannot_create_customer",
    "registration-error-invalid-username",
)
@blp.arguments(schemas.ApiKeyCreateRequest, example={"key": examples.NEW_API_KEY})
@idempotent_with_secret(_require_again)
@blp.response(201, schemas.ApiKeyWithSecretResponse, example={"key": examples.CREATED_API_KEY})
def create_api_key(body: Body) -> Response:
    """Create an API key.

    The response contains the consumer key and the secret. They are shown in this response only, and
    in its repetition for the same `Idempotency-Key`, as long as the key of the request could still
    create the key. All fields are optional. A key cannot get more rights than the key of the
    request.
    """
    return _new_key(api_keys.issue_key(current_principal(), body["key"]), 201)


@blp.route("/<id:key_id>")
@blp.rights()
@blp.errors("shop_api_invalid_key_id", "shop_api_user_cannot_read_key")
@blp.arguments(ReadQuery, location="query")
@blp.response(200, schemas.ApiKeyResponse, example={"key": examples.API_KEY})
def get_api_key(query: Query, key_id: int) -> Response:
    """Retrieve an API key.

    Returns the key without its consumer key and secret.
    """
    serializer = API_KEY.only(query["selection"])
    row = api_key_queries.get_key(current_principal(), key_id, serializer.columns)
    return json_response({"key": serializer.row(row)})


@blp.route("/<id:key_id>", methods=["PUT"])
@blp.errors(
    "shop_api_missing_key_data",
    "shop_api_invalid_key_id",
    "shop_api_user_cannot_edit_key",
    "shop_api_insufficient_key_rights",
)
@blp.arguments(schemas.ApiKeyUpdateRequest, example={"key": examples.API_KEY_UPDATE})
@blp.response(200, schemas.ApiKeyResponse, example={"key": examples.UPDATED_API_KEY})
def update_api_key(body: Body, key_id: int) -> Response:
    """Update an API key.

    Only supplied fields change. The user of a key cannot be changed. If any right grows, all rights
    of the key must be within those of the key of the request.
    """
    key = api_keys.update_key(current_principal(), key_id, body["key"])
    return json_response({"key": API_KEY.record(key)})


@blp.route("/<id:key_id>", methods=["DELETE"])
@blp.errors("shop_api_invalid_key_id", "shop_api_user_cannot_delete_key")
@blp.response(200, DeleteResponse, example={"message": "Revoked key"})
def delete_api_key(key_id: int) -> Response:
    """Revoke an API key.

    Requests with the key are rejected immediately, on other machines within one second.
    """
    api_keys.delete_key(current_principal(), key_id)
    return json_response({"message": "Revoked key"})


@blp.route("/<id:key_id>/rotate", methods=["POST"])
@blp.rights()
@blp.errors(
    "shop_api_invalid_key_id", "shop_api_user_cannot_edit_key", "shop_api_insufficient_key_rights"
)
@idempotent_with_secret(_require_rotated_again)
@blp.response(200, schemas.ApiKeyWithSecretResponse, example={"key": examples.ROTATED_API_KEY})
def rotate_api_key(key_id: int) -> Response:
    """Rotate an API key.

    Replaces the consumer key and the secret. They are shown in this response only, and in its
    repetition for the same `Idempotency-Key`, as long as the key of the request could still rotate
    the key. The old ones are rejected immediately, on other machines within one second. Users
    without `manage_api_keys` can rotate their own keys.
    """
    return _new_key(api_keys.rotate_key(current_principal(), key_id))
