"""The benchmark asks every filter that the OpenAPI documents offer."""

from qa.bench.lists import DOCUMENTS, Middle, offers, requests

CUSTOMER = {"email": "ada@example.com", "last_name": "Lovelace"}
NUMBERS = dict.fromkeys(("/customers", "/orders", "/coupons", "/redemptions", "/refunds"), 5000)


def test_every_filter_of_a_list_is_asked(app):
    client = app.test_client()
    offered = {prefix: offers(client.get(path).data) for prefix, path in DOCUMENTS.items()}
    asked = requests(offered, Middle(NUMBERS, CUSTOMER, "welcome10", "order-7"))
    paths = {path for paths in asked.values() for path in paths}
    for prefix, path, filters in (
        ("", "/orders", ["status=pending&orderby=total", "orderby=total&order=asc&page=500", "q=ada"]),
        ("", "/customers/count", ["tag=vip", "total_spent_min=100"]),
        ("/wp-json/wc/v3", "/orders", ["product=11&order=desc", "orderby=slug&order=asc"]),
    ):  # fmt: skip
        assert {f"{prefix}{path}?{query}" for query in filters} <= paths
    assert "/wp-json/wc/v3/reports/customers/totals" in paths
    assert all(asked.values())
