"""Workers that are killed in the middle of an import: every line takes effect once (people 7)."""

import pytest
from sqlalchemy import update

from app.db.session import run_in_transaction
from app.models import IMPORT_RUNS
from tests.serving import killed_worker
from tests.webhooks.receivers import until

CODES = 2_500
KILLS = 2


@pytest.mark.slow
@pytest.mark.both_databases
def test_every_line_takes_effect_once(app, settings, admin):
    rows = "".join(f"code-{number}\n" for number in range(CODES))
    sent = admin.request(
        "POST", "/imports?kind=coupons", data=f"code\n{rows}", content_type="text/csv"
    )
    path = f"/imports/{sent.get_json()['import']['id']}"

    def found():
        return admin.get(path).get_json()["import"]

    def end_lease():
        with app.app_context():
            ended = update(IMPORT_RUNS).values(claimed_at=None)
            run_in_transaction(lambda session: session.execute(ended))

    for _ in range(KILLS):
        before = found()["position"]
        with killed_worker(settings):
            until(lambda before=before: found()["position"] > before, "a part")
        end_lease()
    with killed_worker(settings), killed_worker(settings):
        until(lambda: found()["status"] == "finished", "the end", 600)
    done = found()
    assert (done["created"], done["failed"], done["position"]) == (CODES, 0, CODES)
    assert admin.get("/coupons/count").get_json() == {"count": CODES}
    events = admin.get("/events", {"type": "import.completed"}).get_json()["events"]
    assert [each["data"]["import"]["created"] for each in events] == [CODES]
