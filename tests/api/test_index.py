"""``GET /``: links for programs, and a redirect to the documentation for browsers (decisions 13)."""

import pytest

from app.config import VERSION

pytestmark = pytest.mark.one_database

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    "accept", [None, "*/*", "application/json", "application/json, text/html;q=0.9", "text/plain"]
)
def test_index_links_to_everything(anonymous, accept):
    response = anonymous.get("/", headers={"Accept": accept} if accept else {})
    names = {"coupons": "coupons", "customers": "customers", "orders": "orders", "docs": "docs/"}
    names["openapi"] = "openapi.json"
    assert (response.status_code, response.get_json()) == (
        200,
        {
            "name": "Shop Administration API",
            "version": VERSION,
            "links": {name: f"http://localhost/{path}" for name, path in names.items()},
        },
    )
    assert "Accept" in response.headers["Vary"]


def test_index_sends_a_browser_to_the_documentation(anonymous):
    response = anonymous.get("/", headers={"Accept": BROWSER})
    assert (response.status_code, response.headers["Location"]) == (302, "/docs/")
    assert "Accept" in response.headers["Vary"]
    assert anonymous.get("/docs/").status_code == 200


def test_index_under_a_prefix_sends_a_browser_to_the_documentation(client_with):
    client = client_with(SHOP_URL_PREFIX="/shop")
    response = client.get("/shop/", headers={"Accept": BROWSER})
    assert (response.status_code, response.headers["Location"]) == (302, "/shop/docs/")
