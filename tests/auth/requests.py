"""Credentials for the tests of authentication."""

from base64 import b64encode
from types import SimpleNamespace

from tests.api_client import codes, refusal

UNKNOWN_KEY = SimpleNamespace(consumer_key=f"ck_{'0' * 40}", consumer_secret=f"cs_{'0' * 40}")
REFUSED = (401, "shop_api_authentication_error")
TOO_MANY = refusal("shop_api_too_many_requests")


def basic(pair):
    encoded = b64encode(pair if isinstance(pair, bytes) else pair.encode()).decode()
    return f"Basic {encoded}"


def assert_refused(response):
    assert codes(response) == REFUSED
    assert response.headers["WWW-Authenticate"].startswith('Basic realm="')
    assert response.content_type == "application/json"
