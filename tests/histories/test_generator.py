"""The generator of operations."""

import pytest

from tests.histories.generator import Generator, World


class Deleted(dict):
    """Orders that another client deletes after this one has chosen one of them."""

    def __getitem__(self, key):
        raise KeyError(key)


def test_another_client_deletes_the_chosen_order(monkeypatch):
    world = World(1, 60)
    world.orders = Deleted({7: {"id": 7, "status": "cancelled", "coupon_lines": []}})
    generator = Generator(0, world, 1, 5)
    monkeypatch.setattr(generator, "_kind", lambda: "change_customer")
    assert generator.next().kind == "read_feed"


def test_defect_of_the_generator_is_not_ignored(monkeypatch):
    generator = Generator(0, World(1, 60), 1, 5)
    monkeypatch.setattr(generator, "_kind", lambda: "reserve")
    monkeypatch.setattr(generator, "_reserve", lambda: {}["coupon_lines"])
    with pytest.raises(KeyError, match="coupon_lines"):
        generator.next()
