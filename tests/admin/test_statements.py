"""A page takes at most eight statements more than the request to the API that shows the same."""

import pytest
from sqlalchemy import event

from app.db.session import db


@pytest.fixture
def count(app):
    """Return a function: the number of statements of a call."""

    def run(call):
        with app.app_context():
            engines = {engine for engine in db.engines.values()}
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
    pages = {
        "/coupons": "/coupons",
        f"/coupons/{coupon}": f"/coupons/{coupon}",
        f"/coupons/{coupon}/edit": f"/coupons/{coupon}",
        "/batches": "/coupons/batches",
    }
    for page, path in pages.items():
        browser.get(page)  # what is read once a minute
        admin.get(path)
        of_page, of_api = count(lambda: browser.get(page)), count(lambda: admin.get(path))  # noqa: B023
        assert of_page <= of_api + 8, page
