"""Dumps and shops for the tests of the import from WooCommerce."""

import json
from dataclasses import dataclass

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from tests.api_client import Client
from tests.dumps.dialects import write_dump
from tests.dumps.shop import KEY, SECRET


@dataclass
class ImportedKey:
    """The key of an ERP system at the old server."""

    consumer_key: str = KEY
    consumer_secret: str = SECRET


@pytest.fixture
def shop_file(tmp_path):
    """Return a function: the name of a dump of a shop."""

    def write(shop, dialect="mysqldump", name="shop.sql", **options):
        write_dump(tmp_path / name, shop, dialect, **options)
        return tmp_path / name

    return write


@pytest.fixture
def import_dump(app, tmp_path):
    """Return a function: import a file; return the printed table, the lines, and the result."""

    def run(source, *options, fails=False):
        report = tmp_path / "report.ndjson"
        result = app.test_cli_runner().invoke(
            args=["import", "woocommerce", str(source), "--report", str(report), *options]
        )
        assert (result.exit_code != 0) == fails, result.output
        lines = [json.loads(line) for line in report.read_text().splitlines()]
        keys = {line["key"]: line["number"] for line in lines if "key" in line}
        lines = [line for line in lines if "key" not in line]
        return Printed(result.output, table_of(result.stdout), lines, keys)

    return run


@dataclass
class Printed:
    output: str
    table: dict
    lines: list
    keys: dict
    """The number of rows of metadata that were left out, by key."""

    def row(self, label):
        """Read, created, updated, unchanged, altered, left out."""
        return self.table[label]


def table_of(output):
    rows = {}
    for line in output.splitlines():
        words = line.replace(",", "").split()
        if len(words) > 7 and all(word.isdigit() for word in words[-7:-1]):
            rows[" ".join(words[:-7])] = [int(word) for word in words[-7:-1]]
    return rows


@pytest.fixture
def erp(app):
    """The client of the ERP system, with its old key."""
    return Client(app, ImportedKey())


def everything(client):
    """What the legacy API answers about all records."""
    paths = (
        "/wc-api/v3/orders?filter[limit]=-1",
        "/wc-api/v3/customers?filter[limit]=-1&filter[role]=all",
        "/wc-api/v2/coupons?filter[limit]=-1",
    )
    answers = [client.http.get(path, headers=headers_of(client)).get_json() for path in paths]
    assert all("errors" not in answer for answer in answers), answers
    return answers


def headers_of(client):
    return {"Authorization": client.get("/healthz").request.headers["Authorization"]}


def rows_of(model):
    """All rows of a table."""
    rows = fetch(select(model.__table__).order_by(*model.__table__.primary_key.columns))
    return [dict(row._mapping) for row in rows]
