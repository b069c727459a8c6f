"""A page takes at most eight statements more than the request to the API that shows the same."""

from functools import partial

import pytest
from sqlalchemy import event

from app.db.session import db


@pytest.fixture
def count(app):
    """Return a function: the number of statements of a call."""

    def run(call):
        with app.app_context():
            engines = set(db.engines.values())
        seen = []

        def note(connection, cursor, statement, *_):
            seen.append(statement)

        for engine in engines:
            event.listen(engine, "before_cursor_execute", note)
        try:
            call()
        finally:
            for engine in engines:
                event.remove(engine, "before_cursor_execute", note)
        return len(seen)

    return run


@pytest.mark.parametrize("coupons", [1, 3])
def test_statements_of_pages(admin, browser, count, coupons):
    for number in range(coupons):
        created = admin.post("/coupons", {"coupon": {"code": f"code-{number}"}})
    coupon = created.get_json()["coupon"]["id"]
    one = f"/coupons/{coupon}"
    pages = {
        "/coupons": ["/coupons"],
        one: [one, f"/redemptions?coupon_id={coupon}", f"/reports{one}"],
        f"{one}/edit": [one],
        "/batches": ["/coupons/batches"],
        "/": ["/reports/sales", "/reports/coupons", "/orders"],
    }
    for page, paths in pages.items():
        browser.get(page)  # what is read once a minute
        of_page = count(partial(browser.get, page))
        of_api = sum(count(partial(admin.get, path)) for path in paths)
        assert of_page <= of_api + 8, page
