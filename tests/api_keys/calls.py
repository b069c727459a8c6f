"""Keys and requests for the tests of API keys."""

from types import SimpleNamespace

import pytest
from sqlalchemy import select

from app.auth.principals import Permission
from app.db.read_pool import fetch
from app.models import ApiKey
from app.services.api_keys.rights import Rights
from app.services.api_keys.writes import create_key
from tests.api_client import Client

REJECTED = (401, "shop_api_authentication_error")


def reason_of(response):
    return response.get_json()["errors"][0]["message"]


def client_of(app, key):
    """A client with the key of a response."""
    return Client(app, SimpleNamespace(**key))


@pytest.fixture
def limited(app):
    """Return a function: a client with a key of an administrator that has limits."""

    def make(login="limited", role="administrator", permission="read_write", **limits):
        rights = Rights(Permission(permission), **limits)
        with app.app_context():
            return Client(app, create_key(login, role, rights.permission, "", rights=rights))

    return make


@pytest.fixture
def make_key(admin):
    """Return a function: create a key and return it as the API does."""

    def make(client=None, **fields):
        response = (client or admin).post("/keys", {"key": fields})
        assert response.status_code == 201, response.get_json()
        return response.get_json()["key"]

    return make


def stored(app, key_id):
    with app.app_context():
        return fetch(select(ApiKey.__table__).where(ApiKey.id == key_id))[0]
