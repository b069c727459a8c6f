"""Imports over HTTP: files, rules of lines, states, rights and what remains (people 7)."""

import json
import zlib
from datetime import timedelta

import pytest
from sqlalchemy import create_engine, func, insert, select, update

from app.cli.coupons import author
from app.db.locks import version_of_others
from app.db.read_pool import fetch
from app.db.session import db, now, run_in_transaction
from app.import_export import imports as file_imports
from app.import_export import stored_files
from app.import_export.stored_files import import_next_part
from app.models import IMPORT_PARTS, IMPORT_RUNS
from app.services.imports import runs
from app.services.maintenance.cleanup import sweep
from tests.api_client import refusal, reply
from tests.commands import succeed

CSV, NDJSON = "text/csv", "application/x-ndjson"


@pytest.fixture
def send(admin):
    """Return a function: send a file, and return the response."""

    def post(content, kind="coupons", client=None, media_type=CSV, headers=(), **query):
        if isinstance(content, list):
            content = "\n".join(
                each if isinstance(each, str) else json.dumps(each) for each in content
            )
            media_type = NDJSON
        data = content if isinstance(content, bytes) else content.encode()
        return (client or admin).request(
            "POST", "/imports", data=data, content_type=media_type,
            query_string={"kind": kind, **query}, headers=dict(headers),
        )  # fmt: skip

    return post


@pytest.fixture
def work(app):
    """Return a function: do what workers do until nothing waits. Return the number of parts."""

    def run():
        with app.app_context():
            return sum(iter(import_next_part, False))

    return run


@pytest.fixture
def imported(admin, send, work):
    """Return a function: import a file, and return the import and its errors."""

    def run(content, kind="coupons", **query):
        response = send(content, kind, **query)
        assert response.status_code == 201, response.get_json()
        import_id = response.get_json()["import"]["id"]
        work()
        found = admin.get(f"/imports/{import_id}").get_json()["import"]
        errors = admin.get(f"/imports/{import_id}/errors").get_json()["import_errors"]
        return found, errors

    return run


def path_of(response):
    return f"/imports/{response.get_json()['import']['id']}"


def numbers(found):
    names = ("status", "size", "position", "created", "updated", "skipped", "failed")
    return tuple(found[name] for name in names)


def codes(admin):
    query = {"orderby": "id", "order": "asc", "limit": -1, "fields": "code"}
    return [coupon["code"] for coupon in admin.get("/coupons", query).get_json()["coupons"]]


@pytest.mark.both_databases
def test_a_file_is_imported_by_a_worker(admin, send, work):
    response = send("\ufeffcode,type,amount\r\nA,percent,10\r\nb,nothing,1\r\n", name="x.csv")
    assert response.status_code == 201
    found = response.get_json()["import"]
    assert numbers(found) == ("waiting", 2, 0, 0, 0, 0, 0)
    given = ("source", "kind", "name", "format", "on_conflict", "dry_run", "user_id")
    assert [found[name] for name in given] == [
        "file", "coupons", "x.csv", "csv", "fail", False, admin.key.user_id
    ]  # fmt: skip
    assert found["started_at"] is None
    assert codes(admin) == []
    assert work() == 1
    found = admin.get(f"/imports/{found['id']}").get_json()["import"]
    assert numbers(found) == ("finished", 2, 2, 1, 0, 0, 1)
    assert found["started_at"]
    assert found["finished_at"]
    assert codes(admin) == ["a"]
    (error,) = admin.get(f"/imports/{found['id']}/errors").get_json()["import_errors"]
    assert (error["line"], error["code"]) == (3, "shop_api_invalid_coupon_type")
    (event,) = admin.get("/events", {"type": "import.completed"}).get_json()["events"]
    assert (event["resource_id"], event["user_id"]) == (found["id"], admin.key.user_id)
    assert event["data"]["import"]["created"] == 1
    assert admin.get("/imports").get_json()["imports"] == [found]
    some = admin.get("/imports", {"fields": "id", "status": "finished"}).get_json()["imports"]
    assert some == [{"id": found["id"]}]
    assert admin.get("/imports", {"status": "failed"}).get_json() == {"imports": []}


def test_errors_of_lines_are_those_of_bulk(admin, imported, make_coupon):
    make_coupon(code="taken")
    lines = [
        {"code": "good", "amount": 5.5},
        {"code": "taken"},
        {"code": "good"},
        {"code": "x", "amuont": "1"},
        {"code": "x", "usage_limit": "many"},
        "[1]",
        "{",
        "",
        {"code": "x" * 1024 * 1024},
        {"code": "last", "id": 7, "created_at": "2020-01-01T00:00:00Z"},
    ]
    found, errors = imported(lines)
    assert numbers(found) == ("finished", 9, 9, 2, 0, 0, 7)
    assert [(each["line"], each["code"], each["param"]) for each in errors] == [
        (2, "shop_api_coupon_code_already_exists", None),
        (3, "shop_api_coupon_code_already_exists", None),
        (4, "shop_api_invalid_param", "amuont"),
        (5, "shop_api_invalid_param", "usage_limit"),
        (6, "shop_api_invalid_import", None),
        (7, "shop_api_invalid_import", None),
        (9, "shop_api_invalid_import", None),
    ]
    assert "did you mean 'amount'" in errors[2]["message"]
    assert "1,048,576 bytes" in errors[-1]["message"]
    page = admin.get(f"/imports/{found['id']}/errors", {"after": 4, "limit": 2})
    assert [each["line"] for each in page.get_json()["import_errors"]] == [5, 6]
    assert "filter%5Bafter%5D=6" in page.headers["Link"] or "after=6" in page.headers["Link"]


@pytest.mark.both_databases
def test_an_error_can_name_null_characters(imported):
    """PostgreSQL stores none. The worker failed, and took the part again after two minutes."""
    found, (error,) = imported([{"code": "a"}, {"code": "b", "x\0": 1}])
    assert numbers(found) == ("finished", 2, 2, 1, 0, 0, 1)
    assert (error["line"], error["param"]) == (2, "x\ufffd")
    assert error["message"].startswith("x\ufffd: unknown field")


def test_workers_of_the_previous_version_read_the_errors_of_a_file(app, send):
    assert send("code,amount\na,1\nb,1,2\n").status_code == 201
    with app.app_context():
        ((content,),) = fetch(select(IMPORT_PARTS.c.content))
    errors = [error for _number, _record, error in json.loads(zlib.decompress(content))]
    assert errors == [None, "has 3 cells, but the header has 2."]


def test_a_password_is_never_imported(admin, send, imported):
    response = send("email,password\na@b.example,x\n", "customers")
    assert reply(response)[0] == 400
    assert "line 1: the column 'password'" in response.get_json()["errors"][0]["message"]
    _found, errors = imported([{"email": "a@b.example", "password": "x"}], "customers")
    assert [(each["line"], each["param"]) for each in errors] == [(1, "password")]


@pytest.mark.parametrize(
    ("content", "media_type", "words"),
    [
        ("code,colour\na,red\n", CSV, "line 1: the column 'colour' is not imported."),
        ("code,amuont\na,1\n", CSV, "Did you mean 'amount'?"),
        ("code;amount\na;1\n", CSV, "line 1: contains no known column."),
        (
            "code;amount\na;1\n",
            CSV,
            "must be a comma, or import the file with shop-api or on the page",
        ),
        ('"code"\t"amount"\n"a"\t"1"\n', CSV, "line 1: contains no known column. The separator"),
        ("sep=;\ncode;amount\na;1\n", CSV, "line 2: contains no known column. The separator"),
        ("code\n", CSV, "it contains no records"),
        ("", NDJSON, "it contains no records"),
        (b"code\nfine\n\xff\n", CSV, "line 3: is not valid UTF-8: byte 0xff (byte 1)."),
        (b'{"code":"a"}\n{"code":"\xe9"}\n', NDJSON, "line 2: is not valid UTF-8"),
        ("code\na\n".encode("utf-16"), CSV, "line 1: is not valid UTF-8"),
        (
            "code\na\n".encode("utf-16"),
            CSV,
            "but UTF-16. Save it as UTF-8, or import the file with",
        ),
        (
            '{"code":"a"}\n'.encode("utf-16"),
            NDJSON,
            "but UTF-16. Save it as UTF-8, or import the file",
        ),
        ("code,code\na,b\n", CSV, "occurs twice"),
        (",".join(f"Code{'!' * n}" for n in range(2000)), CSV, "as 'Code', 'Code!', 'Code!!', "),
    ],
)
def test_a_file_is_checked_at_once(send, app, content, media_type, words):
    response = send(content, media_type=media_type)
    (error,) = response.get_json()["errors"]
    assert (response.status_code, error["code"]) == (400, "shop_api_invalid_import")
    assert words in error["message"]
    assert "line " in error["message"]
    with app.app_context():
        assert fetch(select(IMPORT_RUNS)) == []


def test_other_bodies_and_parameters_are_rejected(admin, send, monkeypatch, client_with):
    assert send("{}", media_type="application/json").status_code == 415
    for query in (
        {"dryrun": "true"}, {"dry_run": "yes"}, {"dry_run": ""}, {"on_conflict": "merge"},
        {"kind": "orders"}, {"kind": ""},
    ):  # fmt: skip
        assert send("code\na\n", **query).status_code == 400, query
    assert admin.request("POST", "/imports", data="code\na\n", content_type=CSV).status_code == 400
    monkeypatch.setattr(stored_files, "MAX_RECORDS", 1)
    response = send("code\na\nb\n")
    assert reply(response) == refusal(
        "shop_api_request_entity_too_large", words="The file has more than 1 records."
    )
    client = client_with(SHOP_IMPORT_MAX_BYTES=8, SHOP_MAX_BODY_BYTES=4)
    assert send("code\na\nb\n", client=client).status_code == 413
    assert send("code\na\n", client=client).status_code == 201


@pytest.mark.both_databases
def test_a_dry_run_writes_nothing_until_it_is_started(admin, send, work, monkeypatch):
    monkeypatch.setattr(stored_files, "BATCH", 2)
    content = "code,amount\na,1\na,1\nb,x\nc,1\n"
    path = path_of(send(content, dry_run="true"))
    work()
    found = admin.get(path).get_json()["import"]
    assert numbers(found) == ("ready", 4, 4, 2, 0, 0, 2)
    assert found["dry_run"]
    assert codes(admin) == []
    assert admin.get("/events", {"type": "import.completed"}).get_json()["events"] == []
    started = admin.post(f"{path}/start").get_json()["import"]
    assert numbers(started) == ("waiting", 4, 0, 0, 0, 0, 0)
    assert not started["dry_run"]
    assert admin.get(f"{path}/errors").get_json()["import_errors"] == []
    assert work() == 2
    assert numbers(admin.get(path).get_json()["import"]) == ("finished", 4, 4, 2, 0, 0, 2)
    assert codes(admin) == ["a", "c"]
    assert admin.post(f"{path}/start").status_code == 409
    assert admin.post(f"{path}/cancel").status_code == 409


@pytest.mark.both_databases
def test_a_cancelled_import_continues_where_it_stopped(app, admin, send, work, monkeypatch):
    monkeypatch.setattr(stored_files, "BATCH", 2)
    path = path_of(send("code\na\nb\nc\nd\na\n"))
    with app.app_context():
        assert import_next_part()
    assert numbers(admin.get(path).get_json()["import"])[:4] == ("running", 5, 2, 2)
    cancelled = admin.post(f"{path}/cancel").get_json()["import"]
    assert numbers(cancelled)[:4] == ("cancelled", 5, 2, 2)
    assert work() == 0
    assert admin.post(f"{path}/cancel").status_code == 409
    assert admin.post(f"{path}/start").get_json()["import"]["position"] == 2
    assert work() == 2
    assert numbers(admin.get(path).get_json()["import"]) == ("finished", 5, 5, 4, 0, 0, 1)
    assert codes(admin) == ["a", "b", "c", "d"]
    events = admin.get("/events", {"type": "import.completed"}).get_json()["events"]
    assert [each["data"]["import"]["status"] for each in events] == ["cancelled", "finished"]


@pytest.mark.both_databases
def test_a_part_that_is_cancelled_or_imported_meanwhile_writes_nothing(
    app, admin, send, monkeypatch
):
    import_id = send("code\na\n").get_json()["import"]["id"]
    claim = runs.claim_import

    def late():
        run = claim()
        admin.post(f"/imports/{import_id}/cancel")
        return run

    monkeypatch.setattr(stored_files, "claim_import", late)
    with app.app_context():
        assert import_next_part()
    assert codes(admin) == []
    assert admin.get(f"/imports/{import_id}").get_json()["import"]["status"] == "cancelled"


@pytest.mark.both_databases
def test_a_part_whose_worker_was_killed_is_imported_once(app, admin, send, work, monkeypatch):
    """Records, numbers, errors and the deleted part are one transaction."""
    import_id = send("code,amount\na,1\nb,x\n").get_json()["import"]["id"]

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runs, "end_import", killed)
        with app.app_context(), pytest.raises(KeyboardInterrupt):
            import_next_part()
    assert codes(admin) == []
    found = admin.get(f"/imports/{import_id}").get_json()["import"]
    assert numbers(found) == ("running", 2, 0, 0, 0, 0, 0)
    assert work() == 0, "another worker waits until the lease ends"
    with app.app_context():
        old = update(IMPORT_RUNS).values(claimed_at=now() - timedelta(minutes=3))
        run_in_transaction(lambda session: session.execute(old))
    assert work() == 1
    found = admin.get(f"/imports/{import_id}").get_json()["import"]
    assert numbers(found) == ("finished", 2, 2, 1, 0, 0, 1)
    assert codes(admin) == ["a"]
    with app.app_context():
        assert fetch(select(func.count()).select_from(IMPORT_PARTS))[0][0] == 0


def test_a_small_file_does_not_wait_for_a_large_one(app, admin, send, monkeypatch):
    monkeypatch.setattr(stored_files, "BATCH", 1)
    send("code\n" + "".join(f"large{at}\n" for at in range(5)))
    with app.app_context():
        older = update(IMPORT_RUNS).values(progress_at=now() - timedelta(minutes=1))
        run_in_transaction(lambda session: session.execute(older))
        import_next_part()
    small = send("code\nsmall\n").get_json()["import"]["id"]
    with app.app_context():
        older = update(IMPORT_RUNS).where(IMPORT_RUNS.c.id == small)
        older = older.values(progress_at=now() - timedelta(seconds=2))
        run_in_transaction(lambda session: session.execute(older))
        import_next_part()
    assert codes(admin) == ["large0", "small"]


def test_at_most_five_imports_are_unfinished(app, admin, send, work, client_for):
    for _ in range(5):
        last = send("code\na\n", dry_run="true").get_json()["import"]["id"]
    response = send("code\na\n")
    assert reply(response)[0] == 409
    assert response.get_json()["errors"][0]["code"] == "shop_api_invalid_import_status"
    assert send("code\na\n", client=client_for(login="bob")).status_code == 201
    work()
    assert send("code\na\n").status_code == 409, "files of dry runs are stored"
    assert admin.post(f"/imports/{last}/cancel").status_code == 200
    assert send("code\nb\n").status_code == 201
    assert admin.post(f"/imports/{last}/start").status_code == 409


def test_rights(app, admin, send, work, client_for, make_app):
    path = path_of(send("code\na\n", dry_run="true"))
    work()
    customer, other = client_for("customer"), client_for(login="bob")
    for response in (
        send("code\na\n", client=customer), customer.get("/imports"), customer.get(path),
        customer.get(f"{path}/errors"), customer.post(f"{path}/start"),
        customer.post(f"{path}/cancel"), other.post(f"{path}/start"),
    ):  # fmt: skip
        assert reply(response) == refusal("shop_api_user_cannot_import")
    for client in (admin, customer):
        assert reply(client.get("/imports/99")) == refusal("shop_api_invalid_import_id")
    assert other.get(path).status_code == 200
    reader = client_for(permission="read", login="eve")
    assert reader.get(path).status_code == 200
    assert send("code\na\n", client=reader).status_code == 401
    body = {"key": {"permission": "read_write", "resources": ["imports", "customers"]}}
    limited = admin.post("/keys", body).get_json()["key"]
    auth = (limited["consumer_key"], limited["consumer_secret"])
    http = app.test_client()
    assert http.get("/imports", auth=auth).get_json() == {"imports": []}
    assert http.get(path, auth=auth).status_code == 401
    sent = {"data": "code\na\n", "content_type": CSV, "auth": auth}
    assert http.post("/imports?kind=coupons", **sent).status_code == 401
    sent["data"] = "email\na@b.example\n"
    assert http.post("/imports?kind=customers", **sent).status_code == 201


@pytest.mark.parametrize(
    "change", [{"permission": "read"}, {"resources": ["coupons"]}, {"resources": ["imports"]}]
)
def test_an_import_ends_with_the_rights_of_its_key(admin, send, work, client_for, change):
    other = client_for(login="bob")
    path = path_of(send("code\na\n"))
    assert other.put(f"/keys/{admin.key.key_id}", {"key": change}).status_code == 200
    work()
    found = other.get(path).get_json()["import"]
    assert (found["status"], codes(other)) == ("failed", [])
    assert "has lost its rights" in found["reason"]


def test_another_key_of_the_user_continues(app, admin, send, work):
    body = {"key": {"permission": "read_write"}}
    new = admin.post("/keys", body).get_json()["key"]
    auth = (new["consumer_key"], new["consumer_secret"])
    sent = {"data": "code\na\n", "content_type": CSV, "auth": auth}
    response = app.test_client().post("/imports?kind=coupons", **sent)
    path = path_of(response)
    admin.delete(f"/keys/{new['id']}")
    work()
    assert admin.get(path).get_json()["import"]["status"] == "failed"
    assert admin.post(f"{path}/start").status_code == 200
    work()
    assert numbers(admin.get(path).get_json()["import"])[:4] == ("finished", 1, 1, 1)


@pytest.mark.parametrize("kind", ["coupons", "customers"])
@pytest.mark.parametrize("file_format", ["csv", "ndjson"])
def test_an_export_can_be_imported(
    app, admin, imported, make_coupon, make_customer, kind, file_format, tmp_path
):
    make_coupon(code="tea", usage_limit=3, minimum_amount="5.00", customer_emails=["a@b.example"])
    make_coupon(code="plain", metadata={"k": "v"})
    make_customer(email="ada@b.example", first_name="Ada")
    file = tmp_path / f"file.{file_format}"
    succeed(app, "export", kind, file)
    before = admin.get(f"/{kind}").get_json()
    content = file.read_text()
    found, errors = imported(
        content.splitlines() if file_format == "ndjson" else content, kind, on_conflict="update"
    )
    # The account of the key has no address.
    without_address = ["registration-error-invalid-email"] if kind == "customers" else []
    assert [each["code"] for each in errors] == without_address
    assert found["updated"] == found["size"] - len(without_address) > 0
    for each, earlier in zip(admin.get(f"/{kind}").get_json()[kind], before[kind], strict=True):
        assert each | {"updated_at": ""} == earlier | {"updated_at": ""}


def test_an_empty_cell_of_a_number_or_flag_is_not_supplied(admin, imported, make_coupon):
    coupon = make_coupon(code="tea", amount="5", usage_limit=3, individual_use=True)
    header = "code,amount,usage_limit,individual_use,description\n"
    imported(f"{header}tea,,,,\n", on_conflict="update")
    after = admin.get(f"/coupons/{coupon['id']}").get_json()["coupon"]
    assert after | {"updated_at": ""} == coupon | {"updated_at": ""}
    _found, errors = imported(f'{header}a,"1,000",,,\nb,1,1.5,,\nc,1,1,yes,\n')
    assert [each["param"] for each in errors] == ["amount", "usage_limit", "individual_use"]


def test_existing_records_are_skipped_or_updated(admin, imported, make_coupon):
    make_coupon(code="tea", amount="1")
    content = "code,amount\ntea,2\nnew,3\n"
    assert numbers(imported(content, on_conflict="skip")[0])[3:] == (1, 0, 1, 0)
    assert numbers(imported(content, on_conflict="update")[0])[3:] == (0, 2, 0, 0)
    assert admin.get("/coupons/code/tea").get_json()["coupon"]["amount"] == "2.00"


def test_a_repeated_request_stores_one_import(admin, send):
    headers = {"Idempotency-Key": "one"}
    first = send("code\na\n", headers=headers, dry_run="true")
    again = send("code\na\n", headers=headers, dry_run="true")
    assert again.get_json() == first.get_json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert send("code\na\n", headers=headers).status_code == 422, "it would write"
    assert len(admin.get("/imports").get_json()["imports"]) == 1


def age(app, **before):
    """Let an import have ended earlier, and do what a worker does each minute."""
    with app.app_context():
        ended = update(IMPORT_RUNS).values(finished_at=now() - timedelta(**before))
        run_in_transaction(lambda session: session.execute(ended))
        sweep()
        return fetch(select(func.count()).select_from(IMPORT_PARTS))[0][0]


def test_a_file_is_deleted_after_an_hour_and_the_record_with_its_events(app, admin, send, work):
    path = path_of(send("code\na\n", dry_run="true"))
    work()
    assert age(app, minutes=59) == 1
    assert admin.get(path).get_json()["import"]["status"] == "ready"
    assert age(app, minutes=61) == 0
    assert admin.get(path).get_json()["import"]["status"] == "cancelled"
    assert admin.post(f"{path}/start").status_code == 409
    age(app, days=29)
    assert admin.get(path).status_code == 200
    age(app, days=31)
    assert admin.get(path).status_code == 404


def test_imports_of_commands_are_listed(app, admin, tmp_path):
    file = tmp_path / "codes.csv"
    file.write_text("code,amount\na,1\nb,x\n")
    app.test_cli_runner().invoke(args=["import", "coupons", str(file)])
    (found,) = admin.get("/imports").get_json()["imports"]
    assert numbers(found) == ("finished", 2, 2, 1, 0, 0, 1)
    assert (found["user_id"], found["name"], found["format"]) == (None, "codes.csv", "csv")
    assert admin.post(f"/imports/{found['id']}/cancel").status_code == 409
    assert reply(admin.post(f"/imports/{found['id']}/start")) == refusal(
        "shop_api_user_cannot_import"
    )


def test_a_customer_who_is_deleted_leaves_no_address_in_imports(
    app, admin, send, work, make_customer
):
    customer = make_customer(email="ada@b.example")
    held = send("code,customer_emails\nx,Ada@B.example\n").get_json()["import"]["id"]
    other = send("email\nbob@b.example\n", "customers").get_json()["import"]["id"]
    failed = send([{"email": "x", "first_name": "ada@b.example"}], "customers").get_json()[
        "import"
    ]["id"]
    assert admin.delete(f"/customers/{customer['id']}").status_code == 200
    status = {each["id"]: each["status"] for each in admin.get("/imports").get_json()["imports"]}
    assert status == {held: "cancelled", other: "waiting", failed: "cancelled"}
    with app.app_context():
        assert {row.import_id for row in fetch(select(IMPORT_PARTS))} == {other}


def test_a_dry_run_does_not_wait_for_writers(app, send):
    """Only its numbers are stored, in a short transaction."""
    send("code\na\na\n", dry_run="true")
    with app.app_context():
        run = runs.claim_import()
        target, fail = stored_files.TARGETS["coupons"], file_imports.OnConflict.FAIL
        reading = file_imports.FileImport(target, author(None), fail, from_csv=True, strict=True)
        part = reading.read(stored_files._loaded(run.content))
        with db.engine.begin():  # holds the lock for writes
            counts = reading.check(part, set()).counts
    assert (counts.created, counts.failed) == (1, 1)


@pytest.mark.both_databases
def test_only_writes_of_others_delay_the_next_part(app, database_url):
    with app.app_context():
        before = version_of_others()
        run_in_transaction(lambda session: session.execute(update(IMPORT_RUNS).values(name="a")))
        assert version_of_others() == before
        engine = create_engine(db.engine.url)
        with engine.begin() as connection:
            connection.execute(insert(IMPORT_RUNS).values(source="file", created=0, updated=0,
                                                          progress_at=now()))  # fmt: skip
        engine.dispose()
        # On PostgreSQL, writes do not wait for each other.
        assert (version_of_others() != before) == ("sqlite" in database_url)
