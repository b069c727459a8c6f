"""Mounts and errors for the tests of the legacy API."""

import pytest

from app.errors.codes import ERRORS

V2, V3 = "/wc-api/v2", "/wc-api/v3"
BOTH = pytest.mark.parametrize("mount", [V2, V3])


def ours(code):
    """A code of the table with the prefix of the legacy API."""
    return code.replace("shop_api_", "woocommerce_api_")


def legacy_refusal(code, **details):
    status, message = ERRORS[code]
    return status, {"errors": [{"code": ours(code), "message": message.format(**details)}]}


INVALID, NO_ROUTE = "woocommerce_api_invalid_param", "woocommerce_api_no_route"
