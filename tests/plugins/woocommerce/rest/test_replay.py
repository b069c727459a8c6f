"""The recorded exchanges: every difference has a row with its reason (differences.toml)."""

import re

import pytest

from tests.plugins.woocommerce.rest.replay import DIFFERENCES, EXCHANGES, explains, replay, score

SETTINGS = {"SHOP_PUBLIC_URL": "https://shop.example", "SHOP_WEBHOOK_ALLOWED_NETWORKS": "0.0.0.0/0"}

# One request of each kind, for every run of the tests.
FEW = (
    "routing/",
    "timezone/",
    "coupons/list",
    "read/",
    "coupons-update/",
    "refunds/full",
    "batch/",
    "auth/",
    "notes/",
)
MOST_EQUAL = 0.77


def _different(results):
    return [
        (f"{exchange['case']}#{exchange['step']}", problems)
        for exchange, result, problems in results
        if result == "different"
    ]


@pytest.mark.sample(4)
@pytest.mark.parametrize("cases", FEW)
def test_few(app_with, cases):
    assert _different(replay(app_with(**SETTINGS), cases)) == []


@pytest.mark.slow
@pytest.mark.one_database
def test_all(app_with):
    results = list(replay(app_with(**SETTINGS)))
    assert _different(results) == []
    equal = sum(result == "equal" for _, result, _ in results)
    assert equal >= MOST_EQUAL * len(results), score(results)


def test_rows_have_a_reason_and_are_used():
    requests = [each for each in EXCHANGES if each.get("kind") != "delivery"]
    for row in DIFFERENCES["difference"]:
        assert row["reason"]
        assert row["row"]
        assert ("status" in row) != ("fields" in row)
        assert ("request" in row) != ("exchange" in row)
        is_example = "example" in row and re.search(row["request"], row["example"])
        assert is_example or any(explains(row, each) for each in requests), row
