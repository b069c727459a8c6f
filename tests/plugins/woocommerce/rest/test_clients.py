"""Unmodified programs, each through a whole session, and the deliveries that they verify."""

from base64 import b64encode
from pathlib import Path

import pytest
from woocommerce import API

from tests.npm import install, needs_node
from tests.openapi.test_clients import run
from tests.webhooks.receivers import LOOPBACK, Receiver, running_worker

NODE = Path(__file__).parents[3] / "clients" / "legacy"
MCP = NODE.parent / "mcp"
V3 = "/wp-json/wc/v3"


each_way = pytest.mark.parametrize(
    "way",
    [
        "basic",
        pytest.param("signature", marks=pytest.mark.slow),
        pytest.param("query", marks=pytest.mark.slow),
    ],
)


@pytest.mark.slow
@each_way
def test_python(shops, certificate, way):
    shop = shops[way]
    api = API(
        url=shop.url,
        consumer_key=shop.consumer_key,
        consumer_secret=shop.consumer_secret,
        version="wc/v3",
        verify_ssl=str(certificate),
        query_string_auth=way == "query",
    )
    coupon = _ok(
        api.post("coupons", {"code": f"py-{way}", "amount": "10", "discount_type": "percent"})
    )
    line = {"name": "Mug", "quantity": 2, "total": "20.00"}
    order = _ok(
        api.post("orders", {"line_items": [line], "coupon_lines": [{"code": coupon["code"]}]})
    )
    assert order["total"] == "18.00"
    path = f"orders/{order['id']}"
    assert _ok(api.get(path)) == order
    customer = _ok(api.post("customers", {"email": f"py-{way}@mail.example", "first_name": "Ada"}))
    changed = _ok(api.put(path, {"customer_id": customer["id"], "status": "processing"}))
    assert changed["customer"]["first_name"] == "Ada"
    batch = _ok(
        api.post("coupons/batch", {"create": [{"code": f"py-{way}-{n}"} for n in range(3)]})
    )
    assert len(batch["create"]) == 3
    found, pages = [], 1
    while len(found) < 50 and pages:
        query = {"per_page": 2, "page": len(found) // 2 + 1, "orderby": "id", "order": "asc"}
        response = api.get("coupons", params=query)
        found += [each["code"] for each in _ok(response)]
        pages = 'rel="next"' in response.headers["Link"]
    assert {f"py-{way}-{n}" for n in range(3)} <= set(found)
    assert _ok(api.post(f"{path}/notes", {"note": "Packed."}))["author"] == "WooCommerce"
    refund = _ok(api.post(f"{path}/refunds", {"amount": "5.00", "reason": "Late"}))
    expected = [{"id": refund["id"], "reason": "Late", "total": "-5.00"}]
    assert _ok(api.get(path))["refunds"] == expected
    missing = api.get("coupons/99999")
    assert missing.json()["code"] == "woocommerce_rest_shop_coupon_invalid_id"
    assert _ok(api.delete(path))["id"] == order["id"]
    assert _ok(api.delete(path, params={"force": True}))["status"] == "trash"


def _ok(response):
    assert response.status_code in {200, 201}, response.text
    return response.json()


@pytest.mark.slow
@needs_node
@each_way
def test_node(shops, certificate, way):
    install(NODE)
    shop = shops[way]
    environment = {
        "SHOP_URL": shop.url,
        "SHOP_CONSUMER_KEY": shop.consumer_key,
        "SHOP_CONSUMER_SECRET": shop.consumer_secret,
        "NODE_EXTRA_CA_CERTS": str(certificate),
    }
    run("node", "session.mjs", way, cwd=NODE, env=environment)


@pytest.mark.slow
@needs_node
def test_mcp_server(shops):
    install(MCP)
    shop = shops["signature"]
    environment = {
        "SHOP_URL": shop.url,
        "SHOP_CONSUMER_KEY": shop.consumer_key,
        "SHOP_CONSUMER_SECRET": shop.consumer_secret,
    }
    run("node", "session.mjs", cwd=MCP, env=environment)


@pytest.mark.parametrize("is_served", [True, False], ids=["", "after SHOP_WC_V3=0"])
def test_deliveries_are_bare_and_equal_reads(client_with, is_served):
    settings = {
        "SHOP_WEBHOOK_ALLOWED_NETWORKS": LOOPBACK, "SHOP_PUBLIC_URL": "https://shop.example",
    }  # fmt: skip
    shop = client_with(**settings)
    worker = client_with(**settings, SHOP_WC_V3=is_served)
    receiver = Receiver()
    try:
        body = {"topic": "coupon.created", "delivery_url": receiver.url, "secret": "s3cret"}
        webhook = shop.http.post(f"{V3}/webhooks", json=body, headers=_basic(shop)).get_json()
        coupon = shop.http.post(
            f"{V3}/coupons", json={"code": "a"}, headers=_basic(shop)
        ).get_json()
        with running_worker(worker.app):
            ping, delivery = receiver.wait(2)
        assert ping.headers["content-type"] == "application/x-www-form-urlencoded"
        assert ping.body == f"webhook_id={webhook['id']}".encode()
        assert not any(name.startswith("x-wc-") for name in ping.headers)
        assert delivery.json == coupon
        assert delivery.has_legacy_signature("s3cret")
        assert delivery.headers["x-wc-webhook-source"] == "https://shop.example/"
        assert delivery.headers["x-wc-webhook-topic"] == "coupon.created"
    finally:
        receiver.close()
    # Each mount shows its own webhooks only.
    assert shop.get("/wc-api/v3/webhooks").get_json() == {"webhooks": []}
    listed = shop.http.get(f"{V3}/webhooks", headers=_basic(shop)).get_json()
    assert [each["id"] for each in listed] == [webhook["id"]]


def _basic(client):
    pair = f"{client.key.consumer_key}:{client.key.consumer_secret}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
