"""An import leaves records out whose personal data was erased in this shop (people 5)."""

from tests.dumps.shop import FIRST_COUPON, FIRST_CUSTOMER, Shop, php


def test_erased_records_are_left_out_also_with_overwrite(shop_file, import_dump, erp):
    shop = Shop(customers=3, coupons=2, orders=12)
    import_dump(shop_file(shop))
    customer = FIRST_CUSTOMER + 1
    for order in erp.get(f"/customers/{customer}/orders").get_json()["orders"]:
        if order["status"] not in {"completed", "cancelled", "refunded", "failed"}:
            erp.put(f"/orders/{order['id']}", {"order": {"status": "completed"}})
    email = erp.get(f"/customers/{customer}").get_json()["customer"]["email"]
    erased = erp.post("/persons/erase", {"person": {"customer_id": customer}}).get_json()
    assert erased["erasure"]["complete"]
    orders = erased["erasure"]["erased"]["orders"]
    assert orders > 0
    assert erased["erasure"]["erased"]["redemptions"] > 0
    all_uses = erp.get("/redemptions", {"limit": -1}).get_json()
    for options in ([], ["--overwrite"]):
        printed = import_dump(shop_file(shop), *options)
        left_out = [line for line in printed.lines if "erased" in line["why"]]
        assert [line["id"] for line in left_out if line["table"] == "users"] == [customer]
        assert len([line for line in left_out if line["table"] != "users"]) >= orders
        assert erp.get(f"/customers/{customer}").status_code == 404
        found = erp.get("/orders", {"filter[q]": email}).get_json()["orders"]
        assert found == []
        uses = erp.get("/redemptions", {"filter[email]": email}).get_json()["redemptions"]
        assert uses == []
        # `_used_by` of a coupon names the uses of erased orders, too: they are here already.
        assert erp.get("/redemptions", {"limit": -1}).get_json() == all_uses


class WithAddresses(Shop):
    """The same shop, in which a coupon is for two addresses."""

    def coupon_meta(self, number):
        addresses = php(["user1@example.com", "other@shop.example"])
        return [*(dict(super().coupon_meta(number)) | {"customer_email": addresses}).items()]


def test_erased_address_does_not_come_back_to_a_coupon(shop_file, import_dump, erp):
    shop = WithAddresses(customers=3, coupons=1, orders=0)
    import_dump(shop_file(shop))
    person = {"person": {"customer_id": FIRST_CUSTOMER + 1}}
    assert erp.post("/persons/erase", person).get_json()["erasure"]["complete"]
    for options in ([], ["--overwrite"], ["--overwrite"]):
        printed = import_dump(shop_file(shop), *options)
        coupon = erp.get(f"/coupons/{FIRST_COUPON}").get_json()["coupon"]
        assert coupon["customer_emails"] == ["erased@erased.invalid", "other@shop.example"]
        altered = [line["why"] for line in printed.lines if line["id"] == FIRST_COUPON]
        if options and printed.row("coupons")[2]:
            assert altered == ["its addresses stay, because one was erased in this shop"]
