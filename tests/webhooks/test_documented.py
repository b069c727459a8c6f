"""The receiver and the checks of signatures that docs/webhooks.md shows."""

import json
import re
import sqlite3
import subprocess
import time
from pathlib import Path

from app.outbound.signatures import new_secret, sign
from tests.npm import needs_node

BODY = json.dumps({"type": "order.created", "data": {"note": "größe"}}, ensure_ascii=False).encode()
SECRET, OTHER = new_secret(), new_secret()


def documented(language, part):
    """Return the code block of a language that contains a text."""
    text = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()
    blocks = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    (block,) = [each for each in blocks if part in each]
    return block


def signed(body=BODY, *, secrets=(SECRET,), age=0):
    """Return the headers of a delivery."""
    sent_at = int(time.time()) - age
    return {
        "webhook-id": "evt_7",
        "webhook-timestamp": str(sent_at),
        "webhook-signature": sign(secrets, "evt_7", sent_at, body),
    }


def cases():
    """Return the headers of deliveries that arrive now, each with whether it is authentic."""
    return [
        (signed(), True),
        (signed(secrets=[OTHER, SECRET]), True),  # during a rotation
        (signed(age=-200), True),
        (signed(secrets=[OTHER]), False),
        (signed(b"{}"), False),
        (signed(age=400), False),
        (signed() | {"webhook-id": "evt_8"}, False),
        (signed() | {"webhook-timestamp": "x"}, False),
        (signed() | {"webhook-signature": "v1,größe v1, x"}, False),
        ({}, False),
    ]


def test_signatures_are_verified_in_python():
    names = {}
    exec(documented("python", "def is_authentic"), names)
    is_authentic = names["is_authentic"]
    all_cases = cases()
    assert [is_authentic(SECRET, headers, BODY) for headers, _ in all_cases] == [
        expected for _, expected in all_cases
    ]


@needs_node
def test_signatures_are_verified_in_node(tmp_path):
    program = (
        documented("javascript", "isAuthentic")
        + 'import { readFileSync } from "node:fs";\n'
        + "const { secret, body, all } = JSON.parse(readFileSync(0));\n"
        + "const results = all.map((each) => isAuthentic(secret, each, Buffer.from(body)));\n"
        + "console.log(JSON.stringify(results));\n"
    )
    (tmp_path / "verify.mjs").write_text(program)
    all_cases = cases()
    sent = {"secret": SECRET, "body": BODY.decode(), "all": [each for each, _ in all_cases]}
    done = subprocess.run(
        ["node", "verify.mjs"], input=json.dumps(sent).encode(), cwd=tmp_path,
        capture_output=True, check=True, timeout=600,
    )  # fmt: skip
    assert json.loads(done.stdout) == [expected for _, expected in all_cases]


def test_the_receiver_stores_each_event_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    names = {"__name__": "receiver"}
    exec(documented("python", '@app.post("/hooks")'), names)
    client = names["app"].test_client()
    ping = json.dumps({"type": "ping"}).encode()
    statuses = [
        client.post("/hooks", data=body, headers=headers).status_code
        for body, headers in [
            (BODY, signed()),
            (BODY, signed()),
            (ping, signed(ping)),
            (BODY, signed(secrets=[OTHER])),
        ]
    ]
    assert statuses == [204, 204, 204, 500]
    rows = sqlite3.connect("received.db").execute("SELECT * FROM received").fetchall()
    names["db"].close()
    assert rows == [("evt_7", BODY.decode())]
