"""Import and export on the pages, with the test client."""

import io
import re
from datetime import timedelta

import pytest
from sqlalchemy import update
from werkzeug.datastructures import FileStorage
from werkzeug.test import encode_multipart

from app.db.session import now, run_in_transaction
from app.import_export import stored_files
from app.import_export.stored_files import import_next_part
from app.models import IMPORT_RUNS
from app.services.imports import runs

pytestmark = pytest.mark.one_database


def work(app):
    """Do what workers do until nothing waits. Return the number of imported parts."""
    with app.app_context():
        return sum(iter(import_next_part, False))


def send(browser, content, name="coupons.csv", kind="coupons", on_conflict="fail", *, checks=True):
    """Upload a file, let a worker check it, and return the page that follows."""
    content = content.encode() if isinstance(content, str) else content
    file = FileStorage(io.BytesIO(content), name)
    form = {"kind": kind, "on_conflict": on_conflict, "file": file}
    boundary, body = encode_multipart(form)  # in memory, also if the file is large
    kind = f"multipart/form-data; boundary={boundary}"
    page = browser.post("/data/upload", body, content_type=kind)
    if page.status != 303:
        return page, ""
    path = re.search("/data/imports/[0-9]+", page.location)[0]
    if checks:
        work(browser.app)
    return browser.get(page.location.removeprefix("/admin")), path


def test_page_offers_downloads_and_the_upload(browser):
    page = browser.get("/data")
    assert page.status == 200
    for text in ("Download coupons", "Download orders", "Check the file"):
        assert text in page.text


@pytest.mark.both_databases
def test_downloads_are_csv(browser, make_coupon):
    make_coupon(code="=1+1")
    page = browser.get("/data/coupons.csv")
    assert page.headers["Content-Type"].startswith("text/csv")
    assert "attachment" in page.headers["Content-Disposition"]
    assert page.html.splitlines()[0].startswith("\ufeffid,code,"), "Excel needs a mark"
    assert "'=1+1" in page.html
    assert browser.get("/data/users.csv").status == 404


def test_a_download_is_uploaded_again(browser, admin, make_coupon):
    coupon = make_coupon(code="münchen", amount="-2.00", description="-5")
    page = browser.get("/data/coupons.csv")
    assert ",-2.00," in page.html
    admin.delete(f"/coupons/{coupon['id']}", {"force": "true"})
    again, _path = send(browser, page.html)
    assert "1 would be created" in again.text


def test_a_file_with_three_wrong_lines_is_imported_without_them(app, browser, admin, make_coupon):
    make_coupon(code="taken")
    lines = "code,type,amount\ngood1,percent,10\ntaken,percent,5\ngood2,fixed_cart,5.50\n"
    lines += 'comma,percent,"10,50"\nbadtype,nothing,1\n'
    page, path = send(browser, lines)
    assert page.status == 200
    assert "2 would be created" in page.text
    assert "3 have errors" in page.text
    assert "1000.50" in page.text
    assert "Another published coupon already has this code." in page.text
    assert "shop_api_" not in page.text, "codes of errors are for programs"
    codes = {each["code"] for each in admin.get("/coupons").json["coupons"]}
    assert codes == {"taken"}, "a dry run writes nothing"
    assert browser.post(f"{path}/start").status == 303
    assert "0 of 5 lines" in browser.get(path).text
    assert 'http-equiv="refresh"' in browser.get(path).html
    work(app)
    done = browser.get(path)
    assert "2 created" in done.text
    assert "3 failed" in done.text
    codes = {each["code"] for each in admin.get("/coupons").json["coupons"]}
    assert codes == {"taken", "good1", "good2"}
    assert browser.post(f"{path}/start").status == 409, "the end is the end"
    assert "2 created" in browser.get(path).text
    assert "coupons.csv" in browser.get("/data").text


def test_a_late_worker_is_not_reported_as_missing(app, browser):
    _page, path = send(browser, "code,type,amount\nlate,percent,1\n")
    browser.post(f"{path}/start")

    def warns(seconds):
        queued = update(IMPORT_RUNS).values(progress_at=now() - timedelta(seconds=seconds))
        with app.app_context():
            run_in_transaction(lambda session: session.execute(queued))
        return "No worker seems to run" in browser.get(path).text

    assert not warns(30)
    assert warns(90)
    with app.app_context():
        runs.claim_import()
    assert not warns(90), "a worker has it"


def test_an_import_is_cancelled_and_continued(app, browser, admin, monkeypatch):
    monkeypatch.setattr(stored_files, "BATCH", 2)
    rows = "".join(f"part{number},percent,1\n" for number in range(5))
    _page, path = send(browser, f"code,type,amount\n{rows}")
    browser.post(f"{path}/start")
    with app.app_context():
        import_next_part()
    assert "2 of 5 lines" in browser.get(path).text
    assert browser.post(f"{path}/cancel").status == 303
    assert not work(app)
    page = browser.get(path)
    assert "Cancelled. 2 created" in page.text
    assert "Continue" in page.text
    assert browser.post(f"{path}/start").status == 303
    assert work(app) == 2
    assert "5 created" in browser.get(path).text


def test_overview_warns_of_an_import_with_errors(app, admin, browser, make_coupon):
    use = {"code": make_coupon(code="tea")["code"], "reference": "cart-1"}
    admin.post("/redemptions", {"redemption": use})  # without uses, the overview has first steps
    text = "Imports with errors: 1. Open"
    _page, path = send(browser, "code,type,amount\ngood,percent,1\nbad,percent,many\n")
    assert text not in browser.get("/").text, "only a dry run"
    browser.post(f"{path}/start")
    assert work(app)
    assert text in browser.get("/").text


def test_semicolons_and_windows_text_are_read(app, browser, admin):
    rows = "email;first_name\nada@example.com;Zo\xeb\n".encode("cp1252")
    page, path = send(browser, rows, kind="customers")
    assert "1 would be created" in page.text
    assert "it was read as Windows-1252" in page.text
    assert "Windows-1252" not in send(browser, "email;first_name\nbob@example.com;Zo\xeb\n")[0].text
    browser.post(f"{path}/start")
    work(app)
    assert admin.get("/customers/email/ada@example.com").json["customer"]["first_name"] == "Zoë"


def test_cells_are_escaped(browser):
    page, _path = send(browser, 'code,type,amount\n"<script>alert(1)</script>",percent,x\n',
                       name="<script>.csv")  # fmt: skip
    assert page.status == 200
    assert "<script>alert" not in page.html
    assert "<script>.csv" not in page.html


def test_a_key_that_reads_cannot_upload(new_browser):
    reader = new_browser(login="eve", permission="read")
    assert "Check the file" not in reader.get("/data").text
    assert send(reader, "code\nx\n")[0].status in {401, 403}


@pytest.mark.parametrize(("kind", "others"), [("customers", "coupons"), ("orders", "customers")])
def test_a_limited_key_downloads_what_it_may_read(new_browser, kind, others):
    browser = new_browser(resources=[kind])
    page = browser.get("/data")
    assert page.status == 200
    assert f"Download {kind}" in page.text
    assert f"Download {others}" not in page.text
    assert "/admin/data" in browser.get("/sessions").html
    assert browser.get(f"/data/{kind}.csv").status == 200
    assert browser.get(f"/data/{others}.csv").status == 401


def test_a_byte_order_mark_is_no_part_of_the_first_name(browser):
    page, _path = send(browser, "\ufeffcode,type,amount\nnew,percent,10\n".encode())
    assert "1 would be created" in page.text
