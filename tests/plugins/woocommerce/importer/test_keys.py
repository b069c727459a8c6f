"""Imported API keys: clients keep working after the move (migration 1)."""

import hmac
import time
from base64 import b64encode

import pytest
from oauthlib.oauth1 import SIGNATURE_HMAC_SHA1, SIGNATURE_HMAC_SHA256, SIGNATURE_TYPE_QUERY
from oauthlib.oauth1 import Client as Signer
from woocommerce import API

from app import create_app
from app.auth.principals import Permission
from app.services.api_keys.writes import create_key
from tests.api_client import Client
from tests.commands import succeed
from tests.databases import close
from tests.dumps.dialects import write_dump
from tests.dumps.shop import FIRST_ORDER, KEY, SECRET, Shop
from tests.plugins.woocommerce.importer.imports import ImportedKey
from tests.serving import SECRET as SERVING_SECRET
from tests.serving import running_service


@pytest.fixture
def imported(app, tmp_path):
    """A shop with the key of an ERP system."""
    write_dump(tmp_path / "shop.sql", Shop())
    with app.app_context():
        succeed(app, "import", "woocommerce", tmp_path / "shop.sql")
    return app


def status(app, key, secret, path="/wc-api/v3/orders/count", method="GET"):
    pair = b64encode(f"{key}:{secret}".encode()).decode()
    headers = {"Authorization": f"Basic {pair}"}
    return app.test_client().open(path, method=method, headers=headers).status_code


def test_key_works_for_basic_credentials(imported):
    assert status(imported, KEY, SECRET) == 200
    assert status(imported, KEY, SECRET, "/orders/count") == 200
    assert status(imported, KEY, f"{SECRET}0") == 401
    assert status(imported, KEY.upper(), SECRET) == 401
    query = f"?consumer_key={KEY}&consumer_secret={SECRET}"
    response = imported.test_client().get(
        f"/wc-api/v2/orders/count{query}", base_url="https://shop.example"
    )
    assert response.get_json() == {"count": 60}


@pytest.mark.parametrize("method", [SIGNATURE_HMAC_SHA1, SIGNATURE_HMAC_SHA256])
def test_key_works_for_signatures(imported, method):
    url = f"http://localhost/wc-api/v3/orders/{FIRST_ORDER + 1}"
    for secret, expected in ((SECRET, 200), ("cs_wrong", 401)):
        signer = Signer(
            KEY, secret, signature_method=method, signature_type=SIGNATURE_TYPE_QUERY,
            timestamp=str(int(time.time())),
        )  # fmt: skip
        signed, _, _ = signer.sign(url)
        assert imported.test_client().get(signed).status_code == expected


@pytest.mark.slow
def test_hash_of_the_key_is_not_the_key(imported):
    hashed = hmac.digest(b"wc-api", KEY.encode(), "sha256").hex()
    assert status(imported, hashed, SECRET) == 401
    assert status(imported, f"wc-api:{hashed}", SECRET) == 401


@pytest.mark.slow
def test_permission_and_account_of_the_key(imported):
    with imported.app_context():
        result = imported.test_cli_runner().invoke(args=["keys", "list"])
    (line,) = [line for line in result.output.splitlines() if "ERP" in line]
    assert line.split()[:4] == ["1", "boss", "read_write", f"…{KEY[-7:]}"]


def test_key_that_was_created_here_before(app, tmp_path):
    """A key can be here twice: each account keeps its own capabilities."""
    with app.app_context():
        create_key("other", "customer", Permission.READ, "", ImportedKey())
    write_dump(tmp_path / "shop.sql", Shop(orders=2))
    with app.app_context():
        args = ["import", "woocommerce", str(tmp_path / "shop.sql"), "--new-ids"]
        succeed(app, *args)
    assert Client(app, ImportedKey()).get("/customers/count").status_code == 401


class ShopWithTwoEqualKeys(Shop):
    """Two rows have the same consumer key. The column of the source is not unique."""

    def _woocommerce_api_keys(self):
        (row,) = super()._woocommerce_api_keys()
        yield row
        yield 2, 1, "Copy", "read", row[4], "cs_copy", None, KEY[-7:], None


@pytest.mark.slow
def test_second_key_with_the_same_consumer_key_is_left_out(app, shop_file, import_dump):
    dump = shop_file(ShopWithTwoEqualKeys(orders=2))
    left_out = {
        "table": "woocommerce_api_keys", "id": 2, "what": "left_out",
        "why": "key 1 has the same consumer key",
    }  # fmt: skip
    with app.app_context():
        for options, created in ((["--dry-run"], 1), ([], 1), ([], 0)):
            result = import_dump(dump, *options)
            assert result.row("API keys") == [2, created, 0, 1 - created, 0, 1]
            assert left_out in result.lines
        succeed(app, "import", "verify", dump)
    assert status(app, KEY, SECRET) == 200
    assert status(app, KEY, "cs_copy") == 401


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """A running service to which the shop has moved."""
    folder = tmp_path_factory.mktemp("moved")
    write_dump(folder / "shop.sql", Shop())
    with running_service(folder, SHOP_AUTH_FAILURES_PER_MINUTE="0") as service:
        app = create_app(
            {
                "DATABASE_URL": f"sqlite:///{folder}/shop.db",
                "SECRET_KEY": SERVING_SECRET,
                "INSTANCE_PATH": str(folder),
            }
        )
        with app.app_context():
            args = ["import", "woocommerce", str(folder / "shop.sql"), "--new-ids"]
            result = app.test_cli_runner().invoke(args=args)
        close(app)
        assert result.exit_code == 0, result.output
        yield service


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v2", "v3"])
def test_published_client_signs_with_its_old_key(moved, version):
    """The client is the one of test_legacy_clients, with nothing changed but the address."""
    api = API(moved.url, KEY, SECRET, wp_api=False, version=version)
    assert api.get("orders/count").json() == {"count": 60}
    response = api.get("orders", params={"filter[status]": "completed", "filter[limit]": 2})
    assert [order["status"] for order in response.json()["orders"]] == ["completed"] * 2
    order = response.json()["orders"][0]
    changed = api.put(f"orders/{order['id']}", {"order": {"note": f"seen by {version}"}})
    assert changed.json()["order"]["note"] == f"seen by {version}"
    assert API(moved.url, KEY, "cs_x", wp_api=False, version=version).get("orders").status_code == (
        401
    )
