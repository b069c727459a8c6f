"""Import and export on the pages, with the test client."""

import io
import re
from datetime import timedelta

import pytest
from sqlalchemy import select, update
from werkzeug.datastructures import FileStorage
from werkzeug.test import encode_multipart

from app.cli.coupons import author
from app.db.read_pool import fetch
from app.db.session import db, now, run_in_transaction
from app.import_export.uploads import dry_run, import_next_part
from app.models import UPLOADS
from app.services.maintenance import uploads
from app.services.maintenance.cleanup import sweep

pytestmark = pytest.mark.one_database


def work(app):
    """Do what a worker does: import the next part. Return whether there was one."""
    with app.app_context():
        return import_next_part()


def send(browser, content, name="coupons.csv", kind="coupons", on_conflict="fail"):
    """Upload a file, and return the page that follows."""
    content = content.encode() if isinstance(content, str) else content
    file = FileStorage(io.BytesIO(content), name)
    form = {"kind": kind, "on_conflict": on_conflict, "file": file}
    boundary, body = encode_multipart(form)  # in memory, also if the file is large
    kind = f"multipart/form-data; boundary={boundary}"
    page = browser.post("/data/upload", body, content_type=kind)
    if page.status != 303:
        return page, ""
    path = re.search("/data/uploads/[0-9]+", page.location)[0]
    return browser.get(path), path


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
    assert browser.post(f"{path}/import").status == 303
    assert "0 of 5 lines" in browser.get(path).text
    assert 'http-equiv="refresh"' in browser.get(path).html
    work(app)
    done = browser.get(path)
    assert "2 created" in done.text
    assert "3 failed" in done.text
    codes = {each["code"] for each in admin.get("/coupons").json["coupons"]}
    assert codes == {"taken", "good1", "good2"}
    assert browser.post(f"{path}/import").status == 303, "the end is the end"
    assert "2 created" in browser.get(path).text
    again, _path = send(browser, lines)
    assert "already imported" in again.text
    assert "file" in browser.get("/data").text


@pytest.mark.parametrize("everywhere", ["", "1"])
def test_an_import_continues_after_signing_out(app, admin, new_browser, everywhere):
    browser = new_browser()
    _page, path = send(browser, "code,type,amount\nlate,percent,1\n")
    browser.post(f"{path}/import")
    (cookie,) = browser.http._cookies.values()
    assert browser.post("/sign-out", {"everywhere": everywhere}).status == 303
    browser.http.set_cookie(cookie.key, cookie.value)
    assert browser.get("/coupons").status == 303, "the session has ended"
    with app.app_context():
        sweep()
    assert work(app)
    assert [each["code"] for each in admin.get("/coupons").json["coupons"]] == ["late"]
    with app.app_context():
        sweep()
        assert fetch(select(UPLOADS)) == [], "an ended session keeps nothing"


def test_a_late_worker_is_not_reported_as_missing(app, browser):
    _page, path = send(browser, "code,type,amount\nlate,percent,1\n")
    browser.post(f"{path}/import")

    def warns(seconds):
        queued = update(UPLOADS).values(queued_at=now() - timedelta(seconds=seconds))
        with app.app_context():
            run_in_transaction(lambda session: session.execute(queued))
        return "No worker seems to run" in browser.get(path).text

    assert not warns(30)
    assert warns(90)
    with app.app_context():
        uploads.claim()
    assert not warns(90), "a worker has it"


def test_large_files_are_imported_in_parts(app, browser, admin, monkeypatch):
    monkeypatch.setattr("app.import_export.uploads.PART", 2)
    rows = "".join(f"part{number},percent,1\n" for number in range(5))
    _page, path = send(browser, f"code,type,amount\n{rows}")
    browser.post(f"{path}/import")
    for text in ("2 of 5 lines", "4 of 5 lines", "5 created"):
        assert work(app)
        assert text in browser.get(path).text
    assert not work(app)
    assert admin.get("/coupons/count").json["count"] == 5
    (event,) = admin.get("/events", {"type": "import.completed", "limit": 1}).json["events"]
    assert event["data"]["import"]["created"] == 2


def test_a_part_that_is_killed_leaves_nothing(app, browser, admin, monkeypatch):
    """Records, their event and the position are one transaction, so that the part runs again."""
    monkeypatch.setattr("app.import_export.uploads.PART", 2)
    _page, path = send(browser, "code,type,amount\na,percent,1\nb,percent,1\nc,percent,x\n")
    browser.post(f"{path}/import")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("app.services.maintenance.uploads.note", killed)
        with pytest.raises(KeyboardInterrupt):
            work(app)
    assert admin.get("/coupons/count").json["count"] == 0
    assert admin.get("/events", {"type": "import.completed"}).json["events"] == []
    assert "0 of 3 lines" in browser.get(path).text
    claimed = update(UPLOADS).values(claimed_at=now() - timedelta(minutes=3))
    with app.app_context():
        run_in_transaction(lambda session: session.execute(claimed))
    assert work(app)
    assert work(app)
    assert "2 created, 0 updated, 0 skipped, 1 failed" in browser.get(path).text
    (event,) = admin.get("/events", {"type": "import.completed"}).json["events"]
    assert event["data"]["import"] | {"id": 0} == {
        "id": 0, "source": "file", "kind": "coupons", "created": 2, "updated": 0
    }  # fmt: skip
    runs = browser.get("/data").text
    assert "interrupted" not in runs


def test_a_part_that_another_worker_has_imported_is_not_imported_again(app, browser, admin):
    _page, path = send(browser, "code,type,amount\nonce,percent,1\n")
    browser.post(f"{path}/import")
    with app.app_context():
        slow = uploads.claim()
        run_in_transaction(lambda session: session.execute(update(UPLOADS).values(claimed_at=None)))
        assert import_next_part()
        found = run_in_transaction(lambda session: uploads.is_at(session, slow.id, slow.position))
    assert not found
    assert "1 created, 0 updated, 0 skipped, 0 failed" in browser.get(path).text


def test_a_dry_run_does_not_wait_for_writers(app, browser):
    """Only the file itself is stored, in a short transaction."""
    rows = "".join(f"n{at}@b.example,secret\n" for at in range(1000))
    content = f"email,password\n{rows}n1@b.example,x\n".encode()
    with app.app_context(), db.engine.begin():  # holds the lock for writes
        counts, failures = dry_run(author(None), "customers", "fail", content)
    assert counts == {"created": 1000, "updated": 0, "skipped": 0, "failed": 1}
    assert [number for number, _reason in failures] == [1002]


def test_passwords_of_a_file_are_not_shown(browser):
    page, _path = send(browser, "email,password\na@b.example,hunter2\n", kind="customers")
    assert "a@b.example" in page.text
    assert "hunter2" not in page.html
    assert "YOUR_PASSWORD" in page.text


def test_a_session_keeps_the_last_five_files_that_it_does_not_import(app, browser, monkeypatch):
    first = "code,type,amount\nfirst,percent,1\n"
    _page, imported = send(browser, first)
    browser.post(f"{imported}/import")
    paths = [send(browser, f"code\nc{at}\n")[1] for at in range(6)]
    assert [browser.get(path).status for path in [imported, *paths]] == [200, 404, *[200] * 5]
    monkeypatch.setattr("app.services.maintenance.uploads.WAITING", 1)
    page, _path = send(browser, "code\nlast\n")
    assert page.status == 400
    assert "1 files already wait for their import." in page.text


def test_overview_warns_of_an_import_with_errors(app, admin, browser, make_coupon):
    use = {"code": make_coupon(code="tea")["code"], "reference": "cart-1"}
    admin.post("/redemptions", {"redemption": use})  # without uses, the overview has first steps
    text = "Uploaded files with errors: 1. Open"
    _page, path = send(browser, "code,type,amount\ngood,percent,1\nbad,percent,many\n")
    assert text not in browser.get("/").text, "only a dry run"
    browser.post(f"{path}/import")
    assert work(app)
    assert text in browser.get("/").text


def test_imported_files_are_listed_with_their_errors(app, browser, new_browser):
    _page, path = send(browser, "code,type,amount\ngood,percent,1\nbad,percent,many\n", "<i>.csv")
    assert "Your files" not in browser.get("/data").text, "only a dry run"
    browser.post(f"{path}/import")
    assert "State 0 of 2 lines" in (page := browser.get("/data")).text
    assert "Created 1" not in page.text, "by the dry run"
    assert work(app)
    assert "Created 1 Updated 0 Errors 1 State Finished" in (page := browser.get("/data")).text
    assert f'href="/admin{path}">&lt;i&gt;.csv</a>' in page.html
    assert "Your files" not in new_browser(login="mia").get("/data").text, "of another session"


def test_an_import_ends_with_the_rights_of_its_key(app, browser, admin):
    _page, path = send(browser, "code,type,amount\nlate,percent,1\n")
    browser.post(f"{path}/import")
    assert (
        admin.put(f"/keys/{admin.key.key_id}", {"key": {"permission": "read"}}).status_code == 200
    )
    assert work(app)
    assert not work(app), "the upload has ended"
    assert admin.get("/coupons/count").json["count"] == 0


@pytest.mark.both_databases
def test_two_workers_do_not_import_the_same_part(app, browser):
    _page, path = send(browser, "code,type,amount\nonce,percent,1\n")
    browser.post(f"{path}/import")
    with app.app_context():
        assert uploads.claim() is not None
        assert uploads.claim() is None


def test_semicolons_and_windows_text_are_read(app, browser, admin):
    rows = "email;first_name\nada@example.com;Zo\xeb\n".encode("cp1252")
    page, path = send(browser, rows, kind="customers")
    assert "Windows-1252" in page.text
    browser.post(f"{path}/import")
    work(app)
    assert admin.get("/customers/email/ada@example.com").json["customer"]["first_name"] == "Zoë"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "at least one record"),
        ("code,type\n", "at least one record"),
        ("unknown,names\n1,2\n", "no known column"),
        ('code;"a"b\nx;y\n', "not valid CSV"),
        ("code\nx\n".encode("utf-16-le"), "byte order mark"),
        (b"code\n\x81\x8d\xff", "Windows-1252"),
        (b"PK\x03\x04\x14\0\x06\0\x08", "is a workbook"),
        ("code\n" + "x" * 5 * 1024 * 1024, "larger than 5 MiB"),
        ("code\n" + "x\n" * 20_001, "20,001 records. At most 20,000"),
    ],
    ids=[
        "empty",
        "no records",
        "no known column",
        "quotes",
        "no mark",
        "no text",
        "workbook",
        "large",
        "long",
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_beside_its_field(browser, content, message):
    page, _path = send(browser, content)
    assert page.status == 400
    assert message in page.text
    assert 'aria-invalid="true"' in page.html


def test_an_upload_belongs_to_its_session(browser, new_browser):
    _page, path = send(browser, "code,type,amount\nmine,percent,1\n")
    other = new_browser(login="mia")
    assert other.get(path).status == 404
    assert other.post(f"{path}/import").status == 404


def test_an_uploaded_file_is_kept_for_an_hour(app, browser, admin):
    _page, path = send(browser, "code,type,amount\nlate,percent,1\n")

    def age(minutes):
        created = update(UPLOADS).values(created_at=now() - timedelta(minutes=minutes))
        with app.app_context():
            run_in_transaction(lambda session: session.execute(created))
            sweep()
            return len(fetch(select(UPLOADS.c.id)))

    assert (age(59), browser.get(path).status) == (1, 200)
    assert (age(61), browser.get(path).status) == (0, 404)
    assert browser.post(f"{path}/import").status == 404
    _page, path = send(browser, "code,type,amount\nlate,percent,1\n")
    created = update(UPLOADS).values(created_at=now() - timedelta(minutes=61))
    with app.app_context():
        run_in_transaction(lambda session: session.execute(created))
    assert browser.get(path).status == 404, "also before the worker removes it"
    assert browser.post(f"{path}/import").status == 404
    assert not work(app)


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
