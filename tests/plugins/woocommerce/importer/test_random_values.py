"""Imports of shops with random values: each row is imported or reported, and every list works."""

from random import Random

import pytest

from app.plugins.woocommerce.importer.convert.coupon_plugins import (
    CONDITIONS,
    DATE_RANGE,
    ENDS,
    FIRST_ORDERS,
    MAXIMUMS,
    START_TIME,
    STARTS,
)
from tests.api_client import Client
from tests.dumps.shop import Shop, php
from tests.plugins.woocommerce.importer.imports import ImportedKey

VALUES = [
    None, "", "a\0b", " ", "x", "0", "-1", "1.5", "1e400", "NaN", "²", "é" * 300, "😀\x1a\0", "9" * 40,
    "0000-00-00 00:00:00", "2021-02-30 25:61:61", "9999-12-31 23:59:59", "<b>a</b> &amp;amp; b",
    php([1, "a", None]), "a:1:{s:1:", 'O:8:"stdClass":0:{}', b"\xff\xfe",
]  # fmt: skip
INTEGERS = [0, 1, -1, 7, 2**31, 2**63 - 1]
LISTS = [
    "/coupons", "/customers", "/orders", "/redemptions", "/refunds", "/coupons/trash",
    "/orders/trash", "/keys", "/webhooks", "/reports/sales", "/reports/coupons",
    "/reports/customers", "/wc-api/v3/coupons", "/wc-api/v3/customers", "/wc-api/v3/orders",
    "/wp-json/wc/v3/coupons", "/wp-json/wc/v3/customers", "/wp-json/wc/v3/orders",
]  # fmt: skip


class RandomShop(Shop):
    """A shop of whose values a share is replaced with values that their columns do not expect.

    The primary key stays, other integers remain integers as MySQL guarantees, and the rows of the
    administrator stay, because the requests of the test need the key.
    """

    def __init__(self, seed, share=0.2):
        super().__init__(customers=8, coupons=6, orders=20)
        self._random = Random(seed)
        self._share = share

    def rows(self, name):
        for row in super().rows(name):
            if name in {"options", "woocommerce_api_keys"} or (1 in row[:2] and "user" in name):
                yield row
            else:
                yield row[0], *map(self._any, row[1:])

    def coupon_meta(self, number):
        keys = (*STARTS, START_TIME, *ENDS, *MAXIMUMS, *FIRST_ORDERS, *CONDITIONS)
        random = [(key, self._random.choice(VALUES)) for key in keys]
        return [*super().coupon_meta(number), DATE_RANGE, *random]

    def _any(self, value):
        is_kept = self._random.random() > self._share
        if is_kept:
            return value
        return self._random.choice(INTEGERS if isinstance(value, int) else VALUES)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(10))
def test_any_value_is_imported_or_reported(app, shop_file, import_dump, seed):
    import_dump(shop_file(RandomShop(seed)))
    client = Client(app, ImportedKey())
    for path in LISTS:
        response = client.get(path)
        assert response.status_code == 200, (path, response.get_json())
    for noun in ("coupon", "customer", "order"):
        for each in client.get(f"/{noun}s?fields=id").get_json()[f"{noun}s"]:
            for prefix in ("", "/wc-api/v3", "/wp-json/wc/v3"):
                response = client.get(f"{prefix}/{noun}s/{each['id']}")
                assert response.status_code == 200, (prefix, each, response.get_json())
