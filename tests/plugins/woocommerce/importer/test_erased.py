"""An import leaves records out whose personal data was erased in this shop (people 5)."""

from tests.dumps.shop import FIRST_CUSTOMER, Shop


def test_erased_records_are_left_out_also_with_overwrite(shop_file, import_dump, erp, admin):
    shop = Shop(customers=3, coupons=2, orders=12)
    import_dump(shop_file(shop))
    customer = FIRST_CUSTOMER + 1
    for order in erp.get(f"/customers/{customer}/orders").get_json()["orders"]:
        if order["status"] not in {"completed", "cancelled", "refunded", "failed"}:
            erp.put(f"/orders/{order['id']}", {"order": {"status": "completed"}})
    email = erp.get(f"/customers/{customer}").get_json()["customer"]["email"]
    erased = admin.post("/persons/erase", {"person": {"customer_id": customer}}).get_json()
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
