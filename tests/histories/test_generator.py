"""The generator of operations."""

import time

import pytest

from qa.histories.generator import Generator, World


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


def test_read_after_a_write_has_the_position_of_the_write(monkeypatch):
    """The client chooses the read together with the write, before it knows the position."""
    generator = Generator(0, World(1, 60), 1, 5)
    monkeypatch.setattr(generator, "_kind", lambda: "create_order")
    positions = set()
    for _ in range(400):
        generator.position = "before the write"
        first = generator.next()
        if first.kind == "count_orders" and generator.next().kind == "create_order":
            generator.position = "of the write"
            positions.add(generator.next().position)
    assert positions == {"", "of the write"}


def test_an_expired_reservation_is_reserved_again():
    world = World(1, 60)
    expired = {"id": 7, "code": "vip", "reference": "cart-1", "expires": time.time() - 1}
    world.expiring.append(expired)
    generator = Generator(0, world, 1, 5)
    reserved = [generator._reserve().args for _ in range(200)]
    again = [each["code"] for each in reserved if each["reference"] == "cart-1"]
    assert len(again) > 5
    assert set(again) == {"vip"}


def test_each_use_of_the_last_pause_is_released_once():
    world = World(1, 60)
    world.held = [{"id": number, "code": "vip"} for number in range(3)]
    generator = Generator(0, world, 1, 5)
    released = [operation for _ in range(60) if (operation := generator._release())]
    assert [operation.args["redemption"] for operation in released] == [0, 1, 2]
