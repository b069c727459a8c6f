"""Reads from standbys: selection of requests, age of the data, and standbys that are unavailable.

The app runs in the process of the tests, which record every statement to a standby.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError

from app import create_app
from app.db.read_pool import current_source, fetch, reading_from
from app.db.replicas.monitor import Position, State
from app.db.replicas.routing import ReplicaBehind, current_replicas
from app.db.session import db
from qa.cluster import programs
from qa.cluster.cluster import running_cluster, wait_until
from tests.api_client import Client
from tests.databases import close
from tests.plugins.admin.browser_client import Browser
from tests.serving import SECRET

pytestmark = pytest.mark.skipif(bool(programs.missing("postgres")), reason=programs.missing())

READ_BLUEPRINTS = {
    "coupons", "coupon_trash", "customers", "customer_orders", "orders", "order_trash", "order_notes", "order_refunds", "refunds",
    "redemptions", "reports",
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    with running_cluster(
        settings="max_standby_streaming_delay = 0\nhot_standby_feedback = off"
    ) as cluster:
        yield cluster


def app_of(cluster, folder, **settings):
    return create_app(
        {
            "DATABASE_URL": cluster.primary.url(),
            "DATABASE_REPLICA_URLS": cluster.replica_urls(),
            "SECRET_KEY": SECRET,
            "INSTANCE_PATH": str(folder),
            **settings,
        }
    )


@pytest.fixture(scope="module")
def session_app(cluster, tmp_path_factory):
    app = app_of(cluster, tmp_path_factory.mktemp("instance"), SHOP_METRICS=True)
    yield app
    close(app)


@pytest.fixture
def app(session_app, cluster):
    with session_app.app_context():
        current_replicas().start()
        cluster.wait_for_replicas()
        wait_until(lambda: states(session_app) == ["ok", "ok"])
    return session_app


def states(app):
    with app.app_context():
        return [str(replica.monitor.state) for replica in current_replicas().all]


@pytest.fixture
def admin(app, cluster):
    return Client(app, cluster.key)


@pytest.fixture
def on_replicas(app):
    """A list that fills with the statements that the app sends to its standbys."""
    seen = []
    with app.app_context():
        engines = [engine for name, engine in db.engines.items() if "replica" in (name or "")]

    def note(connection, cursor, statement, parameters, context, executemany):
        if "pg_last_wal_replay_lsn" not in statement and "alembic" not in statement:
            seen.append(statement)

    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    yield seen
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)


codes = (f"code-{number}" for number in range(1_000_000))


def create(client):
    response = client.post("/coupons", {"coupon": {"code": next(codes)}})
    assert response.status_code == 201, response.get_json()
    return response.get_json()["coupon"], response.headers["X-Shop-Position"]


# --- which requests ---


@pytest.mark.slow
def test_only_reads_of_the_named_blueprints_may_use_a_replica(app):
    routed = {
        (app.blueprints[rule.endpoint.rpartition(".")[0]].name, method)
        for rule in app.url_map.iter_rules()
        if hasattr(app.view_functions[rule.endpoint], "reads_replicas")
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    assert {method for _, method in routed} == {"GET"}
    assert {name for name, _ in routed} == READ_BLUEPRINTS
    assert not routed & {("events", "GET"), ("keys", "GET"), ("webhooks", "GET")}


FRESH = {"Prefer": "stale-while=5"}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("path", "headers", "from_replica"),
    [
        ("/coupons", {}, False),
        ("/coupons/count", {}, False),
        ("/coupons?filter[limit]=-1", {}, True),
        ("/customers?filter[limit]=-1", {}, True),
        ("/customers?filter[limit]=100", {}, False),
        ("/wc-api/v3/orders?filter[limit]=-1", {}, True),
        ("/coupons", FRESH, True),
        ("/coupons/count", FRESH, True),
        ("/orders", FRESH, True),
        ("/wc-api/v3/coupons", FRESH, True),
        ("/coupons", {"Prefer": "respond-async, stale-while=5; x=1"}, True),
        ("/coupons", {"Prefer": "stale-while=soon"}, False),
        ("/coupons", {"Prefer": "stale-while=0"}, False),
        ("/events", FRESH, False),
        ("/events", {"X-Shop-Position": "1.1.1"}, False),
        ("/readyz", FRESH, False),
        ("/", FRESH, False),
    ],
)  # fmt: skip
def test_which_reads_use_a_replica(admin, on_replicas, path, headers, from_replica):
    response = admin.get(path, headers=headers)
    assert response.status_code == 200
    assert bool(on_replicas) == from_replica


def test_no_write_key_lookup_or_event_feed_reads_from_a_replica(admin, client_on, on_replicas):
    """Every request says that it may, with both headers, and each key is looked up again."""
    _, position = create(admin)
    headers = {"X-Shop-Position": position, **FRESH}
    requests = [
        ("POST", "/coupons", {"coupon": {"code": next(codes)}}),
        ("POST", "/coupons/bulk", {"coupons": [{"code": next(codes)}, {"code": next(codes)}]}),
        ("POST", "/customers", {"customer": {"email": f"{next(codes)}@example.com"}}),
        ("POST", "/orders", {"order": {"status": "completed"}}),
        ("PUT", "/coupons/1", {"coupon": {"amount": 5}}),
        ("POST", "/coupons/evaluate", {"cart": {"items": []}, "codes": ["code-1"]}),
        ("DELETE", "/coupons/1", None),
        ("GET", "/events", None),
        ("GET", "/events?limit=1", None),
        ("GET", "/coupons/2", None),
        ("GET", "/customers/1", None),
        ("GET", "/orders/1", None),
    ]
    for method, path, body in requests:
        more = {"json": body} if body else {}
        client_on().request(
            method, path, headers={**headers, "Idempotency-Key": next(codes)}, **more
        )
        if method != "GET" or path.startswith("/events"):
            assert on_replicas == [], (method, path)
    assert on_replicas != []
    for table in ("api_keys", "user_roles.user_id = api_keys", "events", "idempotency", "nonces"):
        assert [statement for statement in on_replicas if f"FROM {table}" in statement] == []
    words = ("INSERT", "UPDATE", "DELETE", "FOR UPDATE")
    assert [each for each in on_replicas if each.startswith(words) or "FOR UPDATE" in each] == []


def test_pages_read_reports_from_a_replica_and_all_else_from_the_primary(app, admin, on_replicas):
    browser = Browser(app, admin.key)
    coupon, position = create(admin)
    use = {"code": coupon["code"], "reference": "cart-1"}
    use = admin.post("/redemptions", {"redemption": use}).json["redemption"]["id"]
    position = admin.post(f"/redemptions/{use}/confirm").headers["X-Shop-Position"]
    admin.get("/coupons", headers={"X-Shop-Position": position})  # waits until it is replayed
    on_replicas.clear()
    reports = {"/": 2, f"/coupons/{coupon['id']}": 1, "/refusals": 1}
    others = ("/coupons", "/orders", "/customers", "/events", "/keys", "/sessions", "/webhooks",
              "/data", "/batches", f"/coupons/{coupon['id']}/edit", "/search?q=x")  # fmt: skip
    for path in (*reports, *others):
        assert browser.get(path).status in {200, 303}
        assert len(on_replicas) >= reports.get(path, 0), path
        assert bool(on_replicas) == (path in reports), path
        for table in ("api_keys", "admin_sessions", "webhooks", "FROM events"):
            assert not any(table in statement for statement in on_replicas), path
        on_replicas.clear()


@pytest.mark.slow
def test_pages_read_the_rows_of_csv_files_from_a_replica(app, admin, on_replicas):
    browser = Browser(app, admin.key)
    new = {"generate": {"count": 2, "prefix": f"{next(codes)}-"}}
    batch = admin.post("/coupons/generate", new).json["batch"]["id"]
    coupon = admin.get(f"/coupons?batch={batch}").json["coupons"][0]
    use = admin.post("/redemptions", {"redemption": {"code": coupon["code"], "reference": "cart"}})
    position = use.headers["X-Shop-Position"]
    admin.get("/coupons", headers={"X-Shop-Position": position})  # waits until it is replayed
    selected = {"action": "csv", "everything": "1", "query": f"batch={batch}"}
    one = {"action": "csv", "id": coupon["id"]}
    files = [
        *(partial(browser.get, f"/data/{kind}.csv") for kind in ("coupons", "customers", "orders")),
        partial(browser.get, f"/coupons/{coupon['id']}/redemptions.csv"),
        partial(browser.get, f"/batches/{batch}/codes.csv"),
        partial(browser.post, "/coupons/selected", selected),
        partial(browser.post, "/coupons/selected", one),
    ]
    for file, number in zip(files, (None, None, None, 2, 3, 3, 2), strict=True):
        on_replicas.clear()
        lines = file().html.splitlines()
        assert on_replicas, file
        assert not any(table in each for each in on_replicas for table in ("api_keys", "sessions"))
        expected = number
        if expected is None:
            kind = file.args[0][len("/data/") : -len(".csv")]
            # The shop is that of all tests here, and files of records contain the trash.
            trash = admin.get(f"/{kind}/trash").headers.get("X-Total", 0)
            expected = 1 + admin.get(f"/{kind}/count?role=all").json["count"] + int(trash)
        assert len(lines) == expected


@pytest.fixture
def client_on(app, cluster):
    """Return a function: a client whose key no cache knows."""

    def make():
        app.extensions.pop("shop_api_principals", None)
        return Client(app, cluster.key)

    return make


# --- how current ---


def test_read_with_a_position_sees_the_write(admin, on_replicas):
    for _ in range(30):
        coupon, position = create(admin)
        response = admin.get(f"/coupons/{coupon['id']}", headers={"X-Shop-Position": position})
        assert response.get_json() == {"coupon": coupon}
    assert len(on_replicas) > 15  # some may have taken longer than 100 ms


def test_position_that_no_replica_has_replayed_is_served_by_the_primary(
    cluster, admin, on_replicas
):
    for replica in cluster.replicas:
        replica.pause_replay()
    try:
        coupon, position = create(admin)
        response = admin.get(f"/coupons/{coupon['id']}", headers={"X-Shop-Position": position})
        assert (response.get_json(), on_replicas) == ({"coupon": coupon}, [])
        stale = admin.get(f"/coupons/{coupon['id']}", headers=FRESH)
        assert (stale.status_code, bool(on_replicas)) == (404, True)
    finally:
        for replica in cluster.replicas:
            replica.resume_replay()


def test_work_that_reads_nothing_has_shown_nothing_of_the_replica(app):
    with app.app_context():
        replicas = current_replicas()
        shown = []
        assert replicas.read(lambda: "done", max_lag=5, note_shown=shown.append) == "done"
        assert set(shown) == {None}


@pytest.mark.sample(2)
@pytest.mark.parametrize("position", ["", "x", "2.1.1", "1.1", "1.ff.1", "1.1.ffffffffffffffff"])
def test_unknown_position_is_served_by_the_primary(admin, on_replicas, position):
    response = admin.get("/coupons", headers={"X-Shop-Position": position})
    assert (response.status_code, on_replicas) == (200, [])


def test_position_is_on_writes_and_on_reads_that_may_use_a_replica(admin):
    coupon, position = create(admin)
    assert Position.parse(position) == Position(1, int(position.split(".")[2], 16))
    path = f"/coupons/{coupon['id']}"
    for response, has_position in [
        (admin.get(path), False),
        (admin.get(path, headers=FRESH), True),
        (admin.get(path, headers={"X-Shop-Position": position}), True),
        (admin.get(path, headers={"X-Shop-Position": "x"}), False),
        (admin.get("/events", headers=FRESH), False),
        (admin.put(path, {"coupon": {"amount": 1}}), True),
        (admin.put(path, {"coupon": {"amount": "x"}}), False),
        (admin.post("/coupons/bulk", {"coupons": [{"code": next(codes)}]}), True),
        (admin.post("/coupons/evaluate", {"cart": {"items": []}, "codes": []}), False),
        (admin.delete(path, {"force": "true"}), True),
    ]:
        assert ("X-Shop-Position" in response.headers) == has_position, response.get_json()


@pytest.mark.slow
def test_client_that_alternates_between_replicas_never_goes_back_in_time(cluster, admin):
    """Replay is paused on one replica. Reads that send the position of the last response."""
    coupon, position = create(admin)
    path = f"/coupons/{coupon['id']}"
    cluster.wait_for_replicas()
    cluster.replicas[1].pause_replay()
    try:
        admin.put(path, {"coupon": {"amount": 7}})
        cluster.replicas[0].wait_for(cluster.primary)
        amounts, last = set(), None
        for _ in range(100):  # from either replica, as each of them is recent enough
            last = admin.get(path, headers=FRESH)
            amounts.add(last.get_json()["coupon"]["amount"])
            if len(amounts) == 2 and last.get_json()["coupon"]["amount"] == "7.00":
                break
        assert amounts == {"0.00", "7.00"}
        for _ in range(20):
            last = admin.get(path, headers={"X-Shop-Position": last.headers["X-Shop-Position"]})
            assert last.get_json()["coupon"]["amount"] == "7.00"
        # Served by the replica that replays, and at least as new as the write.
        assert Position.parse(last.headers["X-Shop-Position"]) >= Position.parse(position)
    finally:
        cluster.replicas[1].resume_replay()


@pytest.mark.slow
def test_missing_record_has_a_position_too(cluster, admin):
    """A client that has seen the deletion must not see the record again on another replica."""
    coupon, _ = create(admin)
    path = f"/coupons/{coupon['id']}"
    cluster.wait_for_replicas()
    cluster.replicas[1].pause_replay()
    try:
        admin.delete(path, {"force": "true"})
        cluster.replicas[0].wait_for(cluster.primary)
        for _ in range(100):
            last = admin.get(path, headers=FRESH)
            if last.status_code == 404:
                break
        for _ in range(20):
            last = admin.get(path, headers={"X-Shop-Position": last.headers["X-Shop-Position"]})
            assert last.status_code == 404
    finally:
        cluster.replicas[1].resume_replay()


@pytest.mark.slow
def test_position_of_a_read_that_the_primary_served_includes_what_it_has_shown(cluster, admin):
    for replica in cluster.replicas:
        replica.pause_replay()
    try:
        coupon, position = create(admin)
        path = f"/coupons/{coupon['id']}"
        _, later = create(admin)
        response = admin.get(path, headers={"X-Shop-Position": position})
        assert Position.parse(response.headers["X-Shop-Position"]) >= Position.parse(later)
    finally:
        for replica in cluster.replicas:
            replica.resume_replay()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/coupons?filter[limit]=-1", "/customers?filter[limit]=-1"])
def test_long_list_from_a_replica_has_a_position(admin, on_replicas, path):
    _, position = create(admin)
    response = admin.get(path, headers={"X-Shop-Position": position})
    assert response.status_code == 200
    assert Position.parse(response.headers["X-Shop-Position"]) >= Position.parse(position)


@pytest.mark.slow
def test_server_that_was_promoted_during_a_read_is_not_used(cluster, tmp_path):
    """Its state has no position that a replica could compare, so the primary serves the read."""
    app = app_of(cluster, tmp_path, DATABASE_REPLICA_URLS=cluster.primary.url())
    sources = []

    def work():
        sources.append(current_source())
        return fetch(text("SELECT 1"))

    with app.app_context():
        (replica,) = current_replicas().all
        with reading_from(replica, 0), pytest.raises(ReplicaBehind):
            work()
        assert sources == [replica]
    close(app)


@pytest.mark.slow
def test_replica_that_lags_too_much_is_not_used(cluster, tmp_path):
    app = app_of(cluster, tmp_path, SHOP_REPLICA_LAG_SECONDS=1.5)
    with app.app_context():
        first, second = current_replicas().all
        current_replicas().start()
        wait_until(lambda: states(app) == ["ok", "ok"])
        cluster.replicas[0].pause_replay()
        try:
            create(Client(app, cluster.key))
            wait_until(lambda: first.monitor.state is State.LAGGING)
            assert first.monitor.lag > 1.5
            assert second.monitor.state is State.OK
            found = Client(app).get("/readyz").get_json()
            assert found["status"] == "ok"
            assert [each["state"] for each in found["replicas"]] == ["lagging", "ok"]
        finally:
            cluster.replicas[0].resume_replay()
        wait_until(lambda: first.monitor.state is State.OK)
    close(app)


# --- replicas that cannot serve ---


@pytest.mark.slow
def test_unavailable_replica_is_not_used_until_it_is_available(cluster, app, admin, on_replicas):
    cluster.replicas[0].kill()
    cluster.replicas[1].stop()
    for _ in range(3):  # from the first request on
        assert admin.get("/coupons", headers=FRESH).status_code == 200
        assert admin.get("/customers?filter[limit]=-1").status_code == 200
    wait_until(lambda: states(app) == ["unavailable", "unavailable"])
    for replica in cluster.replicas:
        replica.start()
    wait_until(lambda: states(app) == ["ok", "ok"])
    on_replicas.clear()
    assert admin.get("/coupons", headers=FRESH).status_code == 200
    assert on_replicas != []


@pytest.mark.slow
def test_conflict_with_replay_is_retried_once_on_the_primary(cluster, app, on_replicas, caplog):
    """A lock on the primary, replayed by a standby, cancels the statements of the standby (40001)."""
    attempts = []

    def work():
        attempts.append(current_source())
        if len(attempts) == 1:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(lock_coupons, cluster)
                fetch(text("SELECT count(*), pg_sleep(25) FROM coupons"))
        return fetch(text("SELECT 'read' FROM alembic_version"))

    with app.app_context():
        assert current_replicas().read(work) == [("read",)]
    assert attempts[0] is not None
    assert attempts[1:] == [None]
    assert states(app) == ["ok", "ok"]  # a conflict is no reason to exclude a replica
    assert "canceling statement due to conflict with recovery" in caplog.text


def lock_coupons(cluster):
    reads = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(25)%' AND wait_event = 'PgSleep'"
    wait_until(lambda: any(replica.query(reads) for replica in cluster.replicas))
    cluster.primary.query("BEGIN; LOCK TABLE coupons IN ACCESS EXCLUSIVE MODE; COMMIT", "shop")


@pytest.mark.slow
def test_statement_timeout_is_not_retried(cluster, tmp_path):
    app = app_of(cluster, tmp_path, SHOP_STATEMENT_TIMEOUT_SECONDS=0.5)
    attempts = []

    def work():
        attempts.append(current_source())
        fetch(text("SELECT pg_sleep(5)"))

    with app.app_context():
        current_replicas().start()
        wait_until(lambda: states(app) == ["ok", "ok"])
        with pytest.raises(OperationalError):
            current_replicas().read(work)
    assert len(attempts) == 1
    assert attempts[0] is not None
    close(app)


@pytest.mark.slow
def test_replica_that_lacks_the_newest_migration_is_not_used(cluster, tmp_path):
    app = app_of(cluster, tmp_path)
    (version,) = cluster.primary.query("SELECT version_num FROM alembic_version", "shop")[0]
    with app.app_context():
        first, second = current_replicas().all
        cluster.primary.query("UPDATE alembic_version SET version_num = '0001'", "shop")
        cluster.wait_for_replicas()
        cluster.replicas[0].pause_replay()
        cluster.primary.query(f"UPDATE alembic_version SET version_num = '{version}'", "shop")
        try:
            cluster.replicas[1].wait_for(cluster.primary)
            assert [each.monitor.check().state for each in (first, second)] == ["old_schema", "ok"]
        finally:
            cluster.replicas[0].resume_replay()
            cluster.wait_for_replicas()
        assert first.monitor.check().state is State.OK
    close(app)


@pytest.mark.slow
def test_replica_of_another_primary_is_not_used(cluster, tmp_path):
    app = app_of(cluster, tmp_path, DATABASE_REPLICA_URLS=cluster.primary.url())
    with app.app_context():
        (replica,) = current_replicas().all
        assert replica.monitor.check().state is State.NOT_A_STANDBY
        assert not replica.monitor.is_usable(10)
    close(app)


# --- what operators see ---


@pytest.mark.slow
def test_metrics_show_each_replica(app, admin):
    assert admin.get("/coupons", headers=FRESH).status_code == 200
    page = admin.get("/metrics").get_data(as_text=True)
    for number in ("1", "2"):
        assert f'shop_replica_usable{{replica="{number}"}} 1.0' in page
        assert f'shop_replica_lag_seconds{{replica="{number}"}}' in page
    assert 'outcome="replica"' in page


@pytest.mark.slow
def test_doctor_shows_each_replica(cluster, app):
    cluster.replicas[1].stop()
    try:
        result = app.test_cli_runner().invoke(args=["doctor"])
    finally:
        cluster.replicas[1].start()
    lines = result.output.splitlines()
    lines = [line for line in lines if "replica" in line.lower()]
    assert lines[0].startswith("ok     replica 1: lags at most ")
    assert lines[1] == "FAIL   replica 2: unavailable"
    assert "DATABASE_REPLICA_URLS" in lines[2]


@pytest.mark.slow
def test_doctor_accepts_a_list_of_all_servers(cluster, tmp_path):
    """With automatic failover, each of them can be the primary."""
    urls = f"{cluster.primary.url()} {cluster.replica_urls()}"
    for settings, expected in (
        (urls, ["ok     replica 1: not used, because it is a primary", "ok     replica 2: lags"]),
        (cluster.primary.url(), ["FAIL   replica 1: not_a_standby"]),
    ):
        app = app_of(cluster, tmp_path, DATABASE_REPLICA_URLS=settings)
        lines = app.test_cli_runner().invoke(args=["doctor"]).output.splitlines()
        found = [line for line in lines if "replica" in line]
        for line, start in zip(found, expected, strict=False):
            assert line.startswith(start), found
        close(app)


@pytest.mark.slow
def test_nothing_is_watched_without_the_setting(cluster, tmp_path):
    app = app_of(cluster, tmp_path, DATABASE_REPLICA_URLS="")
    with app.app_context():
        assert current_replicas() is None
        assert sorted(map(str, db.engines)) == ["None", "read", "stream"]
        client = Client(app, cluster.key)
        response = client.post("/coupons", {"coupon": {"code": next(codes)}})
        assert response.status_code == 201
        assert "X-Shop-Position" not in response.headers
        assert client.get("/coupons", headers=FRESH).status_code == 200
        assert client.get("/readyz").get_json() == {"status": "ok"}
    views = [view for view in app.view_functions.values() if hasattr(view, "reads_replicas")]
    assert views == []
    close(app)
