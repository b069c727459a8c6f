"""``filter[campaign]`` of coupons, redemptions, batches and reports (campaigns 2 and 9)."""

from typing import NamedTuple

import pytest

from tests.campaigns.test_campaigns import make
from tests.coupons.batches import generate
from tests.coupons.calls import edit
from tests.redemptions.calls import move, reserve

pytestmark = pytest.mark.both_databases

HUGE = 10**30


class Shop(NamedTuple):
    """A campaign with twelve coupons, of which one has a use from before it joined."""

    campaign: int
    early: int
    batch: int


@pytest.fixture
def shop(admin):
    def create(code):
        body = {"coupon": {"code": code, "type": "percent", "amount": "10"}}
        return admin.post("/coupons", body).get_json()["coupon"]["id"]

    create("alone")
    early, campaign = create("early"), make(admin)["id"]
    for code in ("alone", "early"):
        move(admin, reserve(admin, code, code, amount="5.00"), "confirm")
    edit(admin, early, campaign_id=campaign)
    batches = [
        generate(admin, count, coupon={"campaign_id": each}).get_json()["batch"]["id"]
        for count, each in ((11, campaign), (1, 0))
    ]
    (code,) = (each["code"] for each in admin.get(f"/coupons/{early + 2}").get_json().values())
    for amount in ("3.00", "4.00"):
        move(admin, reserve(admin, code, amount, amount=amount), "confirm")
    return Shop(campaign, early, batches[0])


def get(client, path, campaign, **query):
    response = client.get(path, {"filter[campaign]": campaign, **query})
    assert response.status_code == 200, response.get_json()
    return next(iter(response.get_json().values())), response.headers.get("X-Total")


def test_coupons_of_a_campaign(admin, shop):
    pages = [get(admin, "/coupons", shop.campaign, page=page) for page in (1, 2, 3)]
    assert [(len(rows), total) for rows, total in pages] == [(10, "12"), (2, "12"), (0, "12")]
    assert len({row["id"] for rows, _total in pages for row in rows}) == 12
    assert get(admin, "/coupons/count", shop.campaign)[0] == 12
    for unknown in (shop.campaign + 1, HUGE):
        assert get(admin, "/coupons", unknown) == ([], "0")
        assert get(admin, "/coupons/count", unknown)[0] == 0


def test_redemptions_that_count_for_a_campaign(admin, shop):
    """The use of before the coupon joined does not."""
    pages = [get(admin, "/redemptions", shop.campaign, page=page, limit=1) for page in (1, 2, 3)]
    assert [([row["amount"] for row in rows], total) for rows, total in pages] == [
        (["4.00"], "2"), (["3.00"], "2"), ([], "2"),
    ]  # fmt: skip
    assert get(admin, "/redemptions/count", shop.campaign)[0] == 2
    assert get(admin, "/redemptions", HUGE) == ([], "0")


def test_batches_of_a_campaign(admin, shop):
    edit(admin, shop.early + 3, campaign_id=0)
    rows, total = get(admin, "/coupons/batches", shop.campaign)
    assert ([row["id"] for row in rows], total) == ([shop.batch], "1")
    assert get(admin, "/coupons/batches", HUGE) == ([], "0")


def test_report_of_the_coupons_that_are_in_a_campaign_now(admin, shop):
    def report(campaign=shop.campaign, **query):
        rows, total = get(admin, "/reports/coupons", campaign, **query)
        return [(row["uses"], row["discount"]) for row in rows], total

    assert report() == ([(2, "7.00"), (1, "5.00")], "2")
    assert report(fields="uses,discount", limit=1, page=2) == ([(1, "5.00")], "2")
    assert report(limit=-1) == ([(2, "7.00"), (1, "5.00")], "2")
    response = admin.get("/reports/coupons", {"campaign": shop.campaign, "format": "csv"})
    assert response.get_data(as_text=True).count("\n") == 3
    admin.delete(f"/coupons/{shop.early}")
    assert report()[1] == "2", "a coupon in the trash is in its campaign"
    edit(admin, shop.early + 2, campaign_id=0)
    assert report() == ([(1, "5.00")], "1")
    assert report(HUGE) == ([], "0")
    response = admin.get("/reports/coupons", {"filter[campaign]": "mailing"})
    assert response.status_code == 400


def test_q_finds_campaigns_by_their_name_only(admin):
    names = ("Spring mailing", "spring", "Letters of MÄRZ")
    for name in names:
        make(admin, name=name, tags=["letters", "märz-2030"])

    def found(text):
        rows = admin.get("/campaigns", {"q": text}).get_json()["campaigns"]
        assert admin.get("/campaigns/count", {"q": text}).get_json() == {"count": len(rows)}
        return {row["name"] for row in rows}

    assert found("SPRING") == {"Spring mailing", "spring"}
    assert found("letters") == found("märz") == {"Letters of MÄRZ"}
    assert found("2030") == found("g\nletters") == set()
    assert len(admin.get("/campaigns", {"tag": "LETTERS"}).get_json()["campaigns"]) == 3
