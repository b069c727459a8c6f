"""Short demonstrations on real servers; ``make cluster-test`` runs long ones with any seed."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from flask_migrate import upgrade
from sqlalchemy import inspect

from app.db.search import is_of_models
from app.db.session import db
from qa.cluster import programs
from qa.cluster.client import Client
from qa.cluster.cluster import running_cluster, wait_until
from qa.cluster.demonstrations import failover, own_writes, patroni, two_machines
from qa.cluster.demonstrations import upgrade as rolling_upgrade
from qa.cluster.patroni import running_patroni
from tests.serving import ROOT

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.filterwarnings("ignore:Skipped unsupported reflection:Warning"),
]
needs_servers = pytest.mark.skipif(bool(programs.missing()), reason=programs.missing())
needs_postgresql = pytest.mark.skipif(
    bool(programs.missing("postgres")), reason=programs.missing("postgres")
)

PREVIOUS = "0015"
"""The newest migration of the previous release."""


@pytest.mark.slow
@needs_postgresql
def test_read_with_a_position_never_misses_a_write():
    with running_cluster() as cluster:
        problems, figures = own_writes.run(cluster, seed=3, pairs=400)
    assert problems == []
    assert figures["pairs"] == 400
    assert figures["reads from a replica"] > 0
    assert figures["pauses of replay"] > 0


@pytest.mark.slow
@needs_postgresql
def test_two_machines_share_revocations_records_and_nonces():
    with running_cluster(replicas=0) as cluster:
        problems, figures = two_machines.run(cluster, seed=3, times=2)
    assert problems == []
    assert figures["keys revoked on one machine"] == 2


@pytest.mark.slow
@needs_servers
def test_nothing_acknowledged_is_lost_when_components_are_killed():
    with running_cluster() as cluster:
        problems, figures = failover.run(cluster, seed=3, order=["bouncer", "primary", "replica"])
    assert problems == []
    assert figures["acknowledged requests"] > 0
    assert figures["kills of primary"] == 1


@pytest.mark.slow
@pytest.mark.skipif(
    bool(programs.missing("postgres", *programs.PATRONI)),
    reason=programs.missing("postgres", *programs.PATRONI),
)
def test_patroni_replaces_a_killed_primary():
    with running_patroni() as cluster:
        problems, figures = patroni.run(cluster, seed=3, order=["kill-primary"])
    assert problems == []
    assert figures["acknowledged requests"] > 0
    assert figures["kill-primary: seconds without a successful write"] < 60


# --- rolling upgrades ---


@pytest.mark.slow
@needs_postgresql
@pytest.mark.skipif(
    not rolling_upgrade.previous_release(), reason="the previous release is not in this clone"
)
def test_previous_release_and_this_one_serve_the_same_database():
    problems, figures = rolling_upgrade.run(seed=3, part=0.5)
    assert problems == []
    assert figures["requests to the previous release"] > 0
    assert figures["requests to this release"] > 0


def tables():
    """The names of the tables that the models describe."""
    return {name for name in inspect(db.engine).get_table_names() if is_of_models(name)}


def columns():
    """Each column of each table: whether rows can be inserted without a value for it."""
    return {
        (table, column["name"]): column["nullable"]
        or column["default"] is not None
        or "computed" in column
        for table in tables()
        for column in inspect(db.engine).get_columns(table)
    }


def rules(tables):
    """The unique constraints and checks of some tables, which can reject rows."""
    found = inspect(db.engine)
    return {
        (table, rule["name"])
        for table in tables
        for rule in [
            *found.get_unique_constraints(table),
            *found.get_check_constraints(table),
            *(index for index in found.get_indexes(table) if index["unique"]),
        ]
    }


@pytest.mark.slow
def test_migrations_since_the_previous_release_do_not_break_it(old_app):
    """Its code finds all tables and columns, and rows that it inserts are accepted."""
    upgrade(revision=PREVIOUS)
    known = tables()
    before, rules_before = columns(), rules(known)
    upgrade()
    after, rules_after = columns(), rules(known)
    assert before.keys() - after.keys() == set()
    new = {(table, name) for table, name in after.keys() - before.keys() if table in known}
    assert {column for column in new if not after[column]} == set()
    assert {column for column in before if before[column] and not after[column]} == set()
    assert rules_after - rules_before == set()


# --- make cluster ---


@pytest.mark.slow
@needs_servers
def test_make_cluster_serves_until_it_is_interrupted(tmp_path):
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "qa.cluster", "start"],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ,
        )
    try:
        wait_until(lambda: "Press Ctrl-C" in log.read_text() or process.poll() is not None, 240)
        text = log.read_text()
        ports = [int(port) for port in re.findall(r"http://127.0.0.1:(\d+)/docs", text)]
        assert len(ports) == 2, text
        assert [Client(port).get("/readyz").body["status"] for port in ports] == ["ok", "ok"]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0, log.read_text()
    (folder,) = re.findall(r"logs, data +(\S+)", text)
    assert not Path(folder).exists()
