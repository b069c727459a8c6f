"""Responses whose length depends on the data are sent while they are read, in bounded memory."""

import resource
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import OperationalError

from app import create_app
from app.api.responses import _with_rest
from app.auth.principals import Permission
from app.db import read_pool
from app.db.session import run_in_transaction
from app.models import DOWNLOADS, ORDER_NOTES, ORDER_REFUNDS, ORDERS
from app.services.api_keys.writes import create_key
from tests.api_client import Client
from tests.databases import SECRET
from tests.factories import DOWNLOAD, ORDER, TIMESTAMP, insert_download, insert_order
from tests.schemas import create_tables
from tests.serving import ROOT

LISTS = (
    "/customers/{customer}/orders",
    "/wc-api/v2/customers/{customer}/orders",
    "/wc-api/v3/customers/{customer}/orders",
    "/customers/{customer}/downloads",
    "/wc-api/v2/customers/{customer}/downloads",
    "/wc-api/v3/customers/{customer}/downloads",
    "/orders/{order}/notes",
    "/wc-api/v3/orders/{order}/notes",
    "/orders/{order}/refunds",
    "/wc-api/v3/orders/{order}/refunds",
    "/wp-json/wc/v3/orders/{order}/notes",
    "/wp-json/wc/v3/customers/{customer}/downloads",
)
LONG = tuple(path for path in LISTS if not path.endswith("/refunds"))
"""Lists that ``fill`` makes long."""

MANY = 8000
ROOM = 48 * 2**20
"""Bytes that a worker may use for these lists, which are longer than 16 MB."""


def opened(client, path):
    """The response to a GET request, without reading its body."""
    return client.http.get(path, auth=(client.key.consumer_key, client.key.consumer_secret))


@pytest.fixture
def shop(app, make_customer):
    """A customer with three orders, of which one has three downloads, notes and refunds."""
    customer = make_customer()["id"]
    orders = [insert_order(app, customer_id=customer) for _ in range(3)]
    for number in range(3):
        insert_download(app, orders[0], download_id=f"file-{number}")
    note = {"order_id": orders[0], "created_at": TIMESTAMP, "customer_note": False}
    refund = {
        "order_id": orders[0], "created_at": TIMESTAMP, "updated_at": TIMESTAMP, "reason": "",
        "amount": Decimal(1), "line_items": [], "refunded_by": None,
    }  # fmt: skip
    with app.app_context():
        for number in range(3):
            new = ORDER_NOTES.insert().values(note | {"note": f"note {number}"})
            run_in_transaction(lambda session, new=new: session.execute(new))
            new = ORDER_REFUNDS.insert().values(refund)
            run_in_transaction(lambda session, new=new: session.execute(new))
    return {"customer": customer, "order": orders[0]}


@pytest.mark.parametrize("path", LISTS)
def test_list_is_the_same_as_a_stream(admin, shop, monkeypatch, path):
    path = path.format(**shop)
    whole = admin.get(path)
    assert whole.status_code == 200
    assert "Content-Length" in whole.headers
    (found,) = [whole.json] if isinstance(whole.json, list) else whole.json.values()
    assert len(found) == 3
    monkeypatch.setattr(read_pool, "STREAM_ABOVE", 2)
    stream = opened(admin, path)
    assert "Content-Length" not in stream.headers
    assert stream.json == whole.json
    for name in ("X-Total", "X-TotalPages", "X-WC-Total", "X-WC-TotalPages"):
        assert stream.headers.get(name) == whole.headers.get(name)


@pytest.mark.parametrize("path", LISTS)
def test_rights_are_checked_before_a_stream(client_for, shop, monkeypatch, path):
    monkeypatch.setattr(read_pool, "STREAM_ABOVE", 2)
    assert opened(client_for(role="customer"), path.format(**shop)).status_code in {401, 403}


def test_options_of_a_streamed_list(admin, shop, monkeypatch):
    """A stream of `wc/v3` can have chosen fields and an envelope, and reaches its end in both."""
    path = LISTS[-1].format(**shop)
    queries = ("_fields=file.name,order_id", "_envelope=1", "_fields=download_id&_envelope")
    whole = [opened(admin, f"{path}?{query}") for query in queries]
    monkeypatch.setattr(read_pool, "STREAM_ABOVE", 2)
    for before, query in zip(whole, queries, strict=True):
        stream = opened(admin, f"{path}?{query}")
        assert "Content-Length" not in stream.headers
        assert (stream.json, stream.status_code) == (before.json, 200)
        for name in ("Link", "Content-Type", "X-Robots-Tag"):
            assert stream.headers.get(name) == before.headers.get(name)


def fill(app):
    """Insert a customer with MANY orders, each with a download, and as many notes of one.

    Returns:
        A key, and the IDs of the customer and of the order with notes.
    """
    key = create_key("administrator", "administrator", Permission.READ_WRITE, "")
    customer = key.user_id
    order = ORDER | {"customer_id": customer, "note": "x" * 2000}
    orders = [order | {"id": n, "order_key": f"o{n}"} for n in range(1, MANY + 1)]
    note = {"order_id": 1, "created_at": TIMESTAMP, "customer_note": False, "note": "x" * 3000}
    file = DOWNLOAD | {"file_url": "x" * 2100}
    files = [
        file | {"id": n, "order_id": n, "download_id": f"file-{n}"} for n in range(1, MANY + 1)
    ]
    with app.app_context():
        run_in_transaction(lambda session: session.execute(insert(ORDERS), orders))
        notes = [note] * MANY
        run_in_transaction(lambda session: session.execute(insert(ORDER_NOTES), notes))
        run_in_transaction(lambda session: session.execute(insert(DOWNLOADS), files))
    return key, {"customer": customer, "order": 1}


def read_in_little_memory(url):
    """Read each long list in this process, which gets little more memory than it has."""
    app = create_app({"DATABASE_URL": url, "SECRET_KEY": SECRET})
    with app.app_context():
        key, shop = fill(app)
    client = Client(app, key)

    def size(path):
        with closing(opened(client, path)) as response:
            assert response.status_code == 200, response.data
            return sum(map(len, response.response))

    size("/orders?limit=1500")  # loads what every list needs
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for path in LONG:
        sys.stdout.write(f"{path} {size(path.format(**shop)) > 2**24}\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_long_lists_need_little_memory(tmp_path):
    create_tables(url := f"sqlite:///{tmp_path}/shop.db")
    program = "import sys; from tests.api.test_streams import *; read_in_little_memory(sys.argv[1])"
    command = [sys.executable, "-c", program, url]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    found = [line for line in result.stdout.splitlines() if line.startswith("/")]
    assert found == [f"{path} True" for path in LONG]


LOST_CONNECTION = OperationalError("", {}, Exception(), connection_invalidated=True)


@pytest.mark.parametrize(
    ("error", "level"), [(LOST_CONNECTION, "WARNING"), (ValueError(), "ERROR")]
)
def test_a_list_that_a_lost_database_aborts_is_no_internal_error(app, caplog, error, level):
    def pieces():
        raise error
        yield b""

    with app.app_context(), pytest.raises(type(error)):
        list(_with_rest(b"", pieces()))
    assert [record.levelname for record in caplog.records] == [level]
