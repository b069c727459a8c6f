"""Requests for the tests of generated coupons."""

import pytest

GENERATE = "/coupons/generate"


def generate(client, count=10, **over):
    return client.post(GENERATE, {"generate": {"count": count, "prefix": "SPRING-"} | over})


@pytest.fixture
def make_batch(admin):
    def make(count=10, client=None, **over):
        response = generate(client or admin, count, **over)
        assert response.status_code == 201, response.get_json()
        return response.get_json()["batch"]

    return make


def listed(client, batch, **query):
    """The coupons of a batch, of all pages."""
    found, page = [], 1
    while True:
        query |= {"filter[batch]": batch["id"], "page": page}
        response = client.get("/coupons", query)
        coupons = response.get_json()["coupons"]
        if not coupons:
            assert response.headers["X-Total"] == str(len(found))
            return found
        found += coupons
        page += 1
