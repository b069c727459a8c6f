"""Comparison of the deliveries to a webhook with the feed of events."""

import subprocess
import sys
import time
from random import Random

from standardwebhooks.webhooks import WebhookVerificationError

from tests.serving import ROOT
from tests.webhooks.receivers import Receiver

FAILURES = 0.02  # share of attempts that the receiver rejects
PATIENCE = 400
"""Seconds without a delivery. A lease of a killed worker takes 10, and the third retry 330.

All clients redeem one coupon. Its events are delivered one after the other, so each rejection of
the receiver holds up thousands of them.
"""


class Deliveries:
    """A worker that can be killed, a webhook for all events, and its receiver."""

    def __init__(self, service, seed):
        self._service = service
        self._random = Random(seed)
        self._receiver = Receiver(self._respond)
        self._worker = None
        self._webhook = None
        self._unverified = []

    def create_webhook(self, caller):
        """Create the webhook, before the first event that is compared."""
        new = {"topics": ["*"], "delivery_url": self._receiver.url}
        status, answer = caller.send("POST", "/webhooks", {"webhook": new})
        assert status == 201, answer
        self._webhook = answer["webhook"]
        self._first = self._newest(caller)

    def start(self):
        """Start a worker, unless one runs."""
        if self._worker is None or self._worker.poll() is not None:
            with self._service.log.with_name("worker.log").open("ab") as log:
                self._worker = subprocess.Popen(
                    [sys.executable, "-m", "app.main", "worker"],
                    cwd=ROOT,
                    env=self._service.environment,
                    stdout=log,
                    stderr=log,
                )

    def kill(self):
        """Kill the worker in the middle of its work."""
        self._worker.kill()
        self._worker.wait()

    def compare(self, caller):
        """Wait for all deliveries, and return the problems and the number of deliveries."""
        self.start()
        end, number = time.monotonic() + PATIENCE, 0
        path = f"/webhooks/{self._webhook['id']}/deliveries?filter[state]=pending&filter[limit]=1"
        while time.monotonic() < end:
            events = self._events(caller)
            accepted = self._accepted()
            if len(accepted) > number:
                end, number = time.monotonic() + PATIENCE, len(accepted)
            pending = caller.send("GET", path)[1]["webhook_deliveries"]
            if not pending and events.keys() <= {each.event_id for each in accepted}:
                break
            time.sleep(1)
        caller.close()
        return self._problems(events, accepted), len(accepted)

    def _problems(self, events, accepted):
        got = {each.event_id for each in accepted}
        problems = [f"event {missing} was not delivered" for missing in sorted(events.keys() - got)]
        problems += [f"event {unknown} is not in the feed" for unknown in got - events.keys()]
        problems += self._unverified
        latest = {}
        for each in accepted:
            if each.event_id not in events:
                continue
            resource = events[each.event_id]
            if each.event_id in latest.setdefault(resource, []):
                continue  # a repetition
            if latest[resource] and latest[resource][-1] > each.event_id:
                problems.append(f"event {each.event_id} of {resource} came late")
            latest[resource].append(each.event_id)
        return problems

    def _respond(self, received):
        """Verify a delivery on arrival, because its timestamp is valid for five minutes."""
        try:
            received.verify(self._webhook["secret"])
        except WebhookVerificationError as error:
            self._unverified.append(f"event {received.event_id}: {error}")
            return 400
        return 500 if self._random.random() < FAILURES else 204

    def _accepted(self):
        return [each for each in list(self._receiver.received) if each.status == 204]

    def _events(self, caller):
        """Return the resource of each event since the webhook was created."""
        found, after = {}, self._first
        while True:
            path = f"/events?filter[after]={after}&filter[limit]=1000"
            status, answer = caller.send("GET", path)
            assert status == 200, answer
            for event in answer["events"]:
                after = event["id"]
                found[after] = event["resource"], event["resource_id"]
            if len(answer["events"]) < 1000:
                return found

    def _newest(self, caller):
        self._first = 0
        return max(self._events(caller), default=0)

    def close(self):
        """Stop the worker and the receiver."""
        if self._worker and self._worker.poll() is None:
            self._worker.kill()
            self._worker.wait()
        self._receiver.close()
