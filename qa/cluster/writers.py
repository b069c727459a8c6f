"""Clients that create, update, delete, send bulk requests and read, and record the responses."""

import http.client
import json
import time
from base64 import b64encode

from qa.cluster.journal import ABSENT, Journal

SECONDS = 60  # no request takes this long unless it hangs
REFUSED = {503, 504}  # possible responses while the database is unavailable
PAUSE = 0.02  # seconds before the next request to an unavailable service


class Caller:
    """Sends JSON over a persistent connection, which it opens again after an error."""

    def __init__(self, port, key):
        pair = f"{key.consumer_key}:{key.consumer_secret}"
        self._headers = {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
        self._port = port
        self._connection = None

    def send(self, method, path, body=None):
        """Return the status and the JSON of the response. Raises OSError or HTTPException without one."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        try:
            data = None if body is None else json.dumps(body)
            self._connection.request(method, path, data, self._headers)
            response = self._connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            self.close()
            raise

    def close(self):
        """Close the connection."""
        if self._connection:
            self._connection.close()
        self._connection = None


class Kind:
    """A kind of record: its path, its key, and the values to write."""

    def __init__(self, name, key, new, change):
        self.name, self.plural, self.key = name, f"{name}s", key
        self.new, self.change = new, change


def _new_coupon(name, random):
    return {
        "code": name,
        "amount": f"{random.randrange(10_000) / 100:.2f}",
        "description": f"made {random.random()}",
        "product_ids": random.sample(range(1, 100), random.randrange(4)),
    }


def _changed_coupon(random):
    return {"description": f"changed {random.random()}", "usage_limit": random.randrange(1000)}


def _new_customer(name, random):
    return {
        "email": f"{name}@example.com",
        "first_name": f"made {random.random()}",
        "last_name": name,
    }


def _changed_customer(random):
    return {"first_name": f"changed {random.random()}", "last_name": str(random.randrange(1000))}


SHARED = {"code": "shared", "usage_limit": 150}
"""The coupon that all clients redeem."""


def _new_redemption(name, random):
    return {"code": SHARED["code"], "reference": name}


KINDS = [
    Kind("coupon", "code", _new_coupon, _changed_coupon),
    Kind("customer", "email", _new_customer, _changed_customer),
    Kind("redemption", "reference", _new_redemption, None),
]


class Client:
    """Writes its own records, one request after the other, and reads them."""

    def __init__(self, name, kind, journal, random, caller):
        self.name, self.kind, self.journal = name, kind, journal
        self.random, self.caller = random, caller
        self.problems = []

    def run(self, stop):
        """Send requests until the event is set, and return the problems."""
        while not stop.is_set():
            self._one_request()
        self.caller.close()
        return self.problems

    def _one_request(self):
        records = self._settled()
        action = self.random.choice(
            ["create", "create", "edit", "edit", "delete", "bulk", "read", "list"]
        )
        if action == "create" or not records:
            self._create()
        elif action == "edit":
            self._edit(self.random.choice(records))
        elif action == "delete":
            self._delete(self.random.choice(records))
        elif action == "bulk":
            self._bulk(records)
        elif action == "read":
            key = self.random.choice(records)
            self._read(f"/{self.kind.plural}/{self.journal.records[key]['id']}", [key])
        else:
            self._read(f"/{self.kind.plural}?filter[q]={self.name}&page=1", records)

    def _settled(self):
        """The keys of the records without a request of unknown outcome."""
        return sorted(self.journal.records.keys() - self.journal.open_keys())

    def _new(self):
        name = f"{self.name}-{self.random.getrandbits(48):x}"
        return self.kind.new(name, self.random)

    def _create(self):
        sent = self._new()
        self._send("POST", f"/{self.kind.plural}", {sent[self.kind.key]: sent})

    def _edit(self, key):
        path = f"/{self.kind.plural}/{self.journal.records[key]['id']}"
        self._send("PUT", path, {key: self.kind.change(self.random)})

    def _delete(self, key):
        force = self.kind.name == "customer" or self.random.random() < 0.5
        path = f"/{self.kind.plural}/{self.journal.records[key]['id']}"
        self._send("DELETE", f"{path}?force={str(force).lower()}", {key: ABSENT})

    def _bulk(self, settled):
        records = self.journal.records
        edited = self.random.sample(settled, min(len(settled), self.random.randrange(5)))
        created = [self._new() for _ in range(self.random.randrange(1, 6))]
        wanted = {
            key: {"id": records[key]["id"], **self.kind.change(self.random)} for key in edited
        }
        wanted |= {sent[self.kind.key]: sent for sent in created}
        self._send("POST", f"/{self.kind.plural}/bulk", wanted)

    def _read(self, path, keys):
        """Read some of its own records, and check that they equal the last response to a write."""
        try:
            status, answer = self.caller.send("GET", path)
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(PAUSE)
            return
        if status in REFUSED:
            time.sleep(PAUSE)
            return
        found = answer.get(self.kind.plural) or [answer.get(self.kind.name)]
        shown = {record[self.kind.key]: record for record in found if record}
        differ = [key for key in keys if key in shown and shown[key] != self.journal.records[key]]
        if status != 200 or differ or (len(keys) == 1 and not shown):
            self.problems.append(f"GET {path}: {status} {answer}, acknowledged {differ}")

    def _send(self, method, path, wanted, **more):
        bulk = path.endswith("/bulk")
        (one, *_) = wanted.values()
        body = {self.kind.plural: list(wanted.values())} if bulk else {self.kind.name: one}
        if more:  # sent, but not returned
            body = {self.kind.name: one | more}
        try:
            status, answer = self.caller.send(method, path, None if method == "DELETE" else body)
        except ConnectionRefusedError:
            time.sleep(PAUSE)  # it was not sent
            return
        except (OSError, http.client.HTTPException, ValueError):
            self.journal.lose(wanted)
            return
        if status in REFUSED:
            self.journal.lose(wanted)
            time.sleep(PAUSE)
        elif status == 400 and self.kind.name == "redemption" and method == "POST":
            pass  # no use was left, so nothing has changed
        elif status not in {200, 201}:
            self.problems.append(f"{method} {path} with {wanted}: {status} {answer}")
            self.journal.lose(wanted)
        elif method == "DELETE":
            self.journal.acknowledge(wanted)
        else:
            results = answer[self.kind.plural] if bulk else [answer[self.kind.name]]
            self.journal.acknowledge(dict(zip(wanted, results, strict=True)))


class RedemptionClient(Client):
    """Reserves, confirms and releases uses of the shared coupon."""

    def _one_request(self):
        records = self._settled()
        live = [key for key in records if self.journal.records[key]["status"] != "released"]
        action = self.random.choice(["create", "create", "confirm", "release", "read", "list"])
        if action == "create" or not live:
            self._create()
        elif action == "read":
            key = self.random.choice(records)
            self._read(f"/redemptions/{self.journal.records[key]['id']}", [key])
        elif action == "list":
            self._read("/redemptions?page=1", records)
        else:
            self._move(self.random.choice(live), action)

    def _create(self):
        sent = self._new()
        # No reservation expires during the run.
        self._send("POST", "/redemptions", {sent["reference"]: sent}, expires_in=604_800)

    def _move(self, key, action):
        redemption = self.journal.records[key]
        change = {"status": "released"}
        if action == "confirm":
            change = {"status": "confirmed", "expires_at": None}
        self._send("POST", f"/redemptions/{redemption['id']}/{action}", {key: change})


def new_client(name, kind, journal, random, caller):
    """Return a client that writes records of a kind."""
    make = RedemptionClient if kind.name == "redemption" else Client
    return make(name, kind, journal, random, caller)


def shared_problems(coupon, redemptions):
    """Return how the shared coupon differs from the ledger, and whether a limit is exceeded."""
    statuses = [redemption["status"] for redemption in redemptions]
    confirmed, reserved = statuses.count("confirmed"), statuses.count("reserved")
    problems = []
    if coupon["usage_count"] != confirmed:
        problems.append(f"usage_count {coupon['usage_count']} beside {confirmed} confirmed uses")
    if confirmed + reserved > SHARED["usage_limit"]:
        problems.append(f"{confirmed + reserved} uses of {SHARED['usage_limit']}")
    return problems


def stored(caller, kind):
    """Return all records of a kind in the service, by their keys."""
    # The page size of the shop is large enough for all coupons.
    status, answer = caller.send("GET", f"/{kind.plural}")
    assert status == 200, answer
    found = {record[kind.key]: record for record in answer[kind.plural]}
    status, answer = caller.send("GET", f"/{kind.plural}/count")
    assert (status, answer) == (200, {"count": len(found)}), "the count and the list differ"
    return found


def new_journals(random, clients):
    """Return for each client its name, its kind and an empty journal."""
    return [
        (
            f"c{number}r{random.getrandbits(24):x}",
            KINDS[number % len(KINDS)],
            Journal(),
        )
        for number in range(clients)
    ]
