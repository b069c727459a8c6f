"""Signed requests for the tests of OAuth 1.0a."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from oauthlib.oauth1 import SIGNATURE_TYPE_QUERY
from oauthlib.oauth1 import Client as Signer

from app.auth.api_keys import ApiKeyCredentials
from app.auth.principals import Permission
from app.services.api_keys.writes import create_key

VECTORS = json.loads((Path(__file__).parent / "oauth_vectors.json").read_text())
PAIR = ApiKeyCredentials(VECTORS["consumer_key"], VECTORS["consumer_secret"])
ORIGIN = "http://localhost"
AN_ERROR = (401, "woocommerce_api_authentication_error")


def sign(key, path, method="GET", origin=ORIGIN, **options):
    """The path and the headers of a request as RFC 5849 signs it."""
    options.setdefault("signature_type", SIGNATURE_TYPE_QUERY)
    signer = Signer(key.consumer_key, key.consumer_secret, **options)
    url, headers, _ = signer.sign(f"{origin}{path}", method)
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}", headers


@pytest.fixture
def key(app):
    """A key with the pair of the recorded requests."""
    with app.app_context():
        return create_key("erp", "administrator", Permission.READ_WRITE, "", PAIR)
