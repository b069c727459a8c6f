"""The commands and figures of docs/reports.md."""

from tests.project.test_docs import read, run_examples

__all__ = ["run_examples"]  # a fixture


def test_commands_of_the_page_succeed(run_examples):
    seen = list(run_examples("docs/reports.md"))
    paths = {path.rpartition("/")[2] for _, path, _ in seen if "/reports/" in path}
    assert {"sales", "coupons", "customers", "orders", "refusals"} <= paths


def test_figures_of_the_first_report(admin, make_coupon):
    make_coupon(code="spring", type="percent", amount="10")
    line = {"name": "Mug", "product_id": 4, "price": "20.00", "quantity": 2}
    order = {"status": "completed", "line_items": [line], "coupon_lines": [{"code": "spring"}]}
    admin.post("/orders", {"order": order})
    sales = admin.get("/reports/sales").get_json()["sales"]
    totals = {name: sales["totals"][name] for name in ("orders", "total", "discount", "uses")}
    assert totals == {"orders": 1, "total": "36.00", "discount": "4.00", "uses": 1}
    assert '"orders": 1, "total": "36.00", "discount": "4.00", "uses": 1' in read("docs/reports.md")
    assert len(sales["intervals"]) == 30
