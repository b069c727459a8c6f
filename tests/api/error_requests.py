"""Requests for the tests of errors."""

import pytest

from tests.api_client import refusal, reply

NO_ROUTE = refusal("shop_api_no_route")


@pytest.fixture
def send(admin, make_coupon):
    """Return a function that sends a body to an operation of a shop with one coupon."""
    coupon = make_coupon(code="only")

    def request(method, path, body, **kwargs):
        response = admin.request(method, path.format_map(coupon), data=body, **kwargs)
        if response.status_code >= 400:
            assert reply(admin.get("/coupons")) == (200, {"coupons": [coupon]})
        return response

    return request
