"""The pages of campaigns, and campaigns on those of coupons and batches (campaigns 8)."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from app.plugins.admin import form_fields, html
from tests.plugins.admin.test_coupons import make, stored

pytestmark = pytest.mark.one_database

NOW = datetime.now(UTC)
PAST, FUTURE = (f"{NOW + timedelta(days=days):%Y-%m-%dT%H:%M}" for days in (-2, 2))


def create(admin, name="Mailing", **over):
    response = admin.post("/campaigns", {"campaign": {"name": name, **over}})
    assert response.status_code == 201, response.get_json()
    return response.get_json()["campaign"]


def read(admin, campaign):
    return admin.get(f"/campaigns/{campaign['id']}").get_json()["campaign"]


def use(admin, code, amount):
    body = {"redemption": {"code": code, "reference": amount, "amount": amount}}
    number = admin.post("/redemptions", body).get_json()["redemption"]["id"]
    admin.post(f"/redemptions/{number}/confirm")


def campaign_of(admin, coupon):
    reply = admin.get(f"/coupons/{coupon['id']}", {"fields": "campaign_id"})
    return reply.get_json()["coupon"]["campaign_id"]


def press(browser, path, end):
    """Press the button of a page whose form has this end of its address."""
    forms = browser.get(path).forms()
    action, values = next((to, dict(values)) for to, _, values in forms if to.endswith(end))
    return browser.post(action.removeprefix("/admin"), values)


def test_the_table_of_an_empty_shop_says_what_to_do(browser):
    text = browser.get("/campaigns").text
    assert "No campaigns yet" in text
    assert "one limit of uses and one budget" in text


def test_the_table_shows_states_period_uses_and_discount(admin, browser):
    campaign = create(admin, "Summer", usage_limit=1000, budget="500", ends_at="2040-01-01")
    make(admin, "a", campaign_id=campaign["id"])
    use(admin, "a", "20.50")
    create(admin, "Later", starts_at="2040-01-01", ends_at="2041-01-01")
    create(admin, "Full", usage_limit=1, active=False)
    create(admin, "Old", ends_at=PAST)
    make(admin, "b", campaign_id=create(admin, "Spent", budget="3")["id"])
    use(admin, "b", "3")
    page = browser.get("/campaigns")
    assert "All 5 Active 1 Scheduled 1 Paused 1 Used up 1 Ended 1" in page.text
    row = "Summer State Active Period until Jan 1, 2040, 00:00 Uses 1 of 1,000 Discount $20.50 of $500.00"
    assert row in page.text
    names = {"Summer", "Later", "Full", "Old", "Spent"}
    for query, expected in {
        "state=active": {"Summer"}, "state=scheduled": {"Later"}, "state=paused": {"Full"},
        "state=used_up": {"Spent"}, "state=ended": {"Old"}, "q=SUM": {"Summer"}, "q=nothing": set(),
    }.items():  # fmt: skip
        html = browser.get(f"/campaigns?{query}").html
        assert {name for name in names if f">{name}</a>" in html} == expected, query
    searched = "All 2 Active 1 Scheduled 1 Paused 0 Used up 0 Ended 0"
    assert searched in browser.get("/campaigns?q=er").text


@pytest.mark.parametrize(
    "address", ["campaign={}", "campaign={}&state=paused", "campaign={}&state=trash"]
)
def test_the_tabs_count_the_coupons_of_the_chosen_campaign(admin, browser, address):
    campaign = create(admin)["id"]
    make(admin, "other", active=False)
    for code, terms in {"a": {}, "b": {"active": False}, "c": {"expiry_date": PAST[:10]}}.items():
        make(admin, code, campaign_id=campaign, **terms)
    admin.delete(f"/coupons/{make(admin, 'd', campaign_id=campaign)['id']}")
    counts = "All 3 Active 1 Expired 1 Paused 1 Scheduled 0 Used up 0 Trash 1"
    assert counts in browser.get(f"/coupons?{address.format(campaign)}").text
    assert "All 4 Active 1 Expired 1 Paused 2" in browser.get("/coupons").text
    searched = browser.get(f"/coupons?q=a&{address.format(campaign)}").text
    assert "All Active Expired Paused Scheduled Used up Trash" in searched


def test_a_history_names_the_campaigns_of_a_coupon(admin, browser):
    first, second = create(admin, "Spring")["id"], create(admin, "Autumn")["id"]
    coupon = make(admin, "a", campaign_id=first)["id"]
    admin.put(f"/coupons/{coupon}", {"coupon": {"campaign_id": second}})
    assert f"Spring (#{first}) → Autumn (#{second})" in browser.get(f"/coupons/{coupon}").text
    admin.put(f"/coupons/{coupon}", {"coupon": {"campaign_id": 0}})
    admin.delete(f"/campaigns/{second}")
    assert f"Autumn (#{second})" not in browser.get(f"/coupons/{coupon}").text
    assert f"(#{second}) → {html.NONE}" in browser.get(f"/coupons/{coupon}").text


def test_ended_campaigns_are_offered_last(admin, browser, monkeypatch):
    monkeypatch.setattr(form_fields, "MAX_CAMPAIGNS", 2)
    for name, terms in {"Old": {}, "New": {}, "Ended": {"ends_at": PAST}}.items():
        create(admin, name, **terms)
    html = browser.get("/coupons/new").html
    assert [name for name in ("New", "Old", "Ended") if f">{name}</option>" in html] == [
        "New",
        "Old",
    ]


def test_creating_editing_and_deleting_a_campaign(admin, browser):
    page = browser.submit("/campaigns/new", "_form", name="Mailing", usage_limit="100", budget="50")
    assert page.status == 303, page.text
    (campaign,) = admin.get("/campaigns").get_json()["campaigns"]
    assert (campaign["active"], campaign["usage_limit"], campaign["budget"]) == (True, 100, "50.00")
    path = f"/campaigns/{campaign['id']}"
    browser.submit(f"{path}/edit", "_form", usage_limit="", tags="spring", active=None)
    changed = read(admin, campaign)
    assert changed["tags"] == ["spring"]
    assert (changed["active"], changed["usage_limit"], changed["budget"]) == (False, None, "50.00")
    text = browser.get(path).text
    assert [each for each in ("Paused", "no limit", "spring", "History") if each not in text] == []
    assert "Limit of uses 100 → " in text
    assert press(browser, path, "/delete").location == "/admin/campaigns?done=deleted"
    assert admin.get("/campaigns/count").get_json() == {"count": 0}


def test_a_new_campaign_can_be_paused(admin, browser):
    browser.submit("/campaigns/new", "_form", name="Mailing", active=None)
    assert admin.get("/campaigns").get_json()["campaigns"][0]["state"] == "paused"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "name"),
        ({"starts_at": FUTURE, "ends_at": FUTURE}, "ends_at"),
        ({"budget": "-1"}, "budget"),
        ({"usage_limit": "many"}, "usage_limit"),
        ({"tags": "role:staff"}, "tags"),
    ],
)
def test_an_error_stands_beside_its_field(admin, browser, given, field):
    page = browser.submit("/campaigns/new", "_form", **{"name": "Mailing"} | given)
    assert (page.status, f'href="#field-{field}"' in page.html) == (400, True), page.text
    assert "_at" not in re.search("Check what you entered.*?Campaign", page.text)[0], "a label"
    assert admin.get("/campaigns/count").get_json() == {"count": 0}


def test_a_used_campaign_is_not_deleted(admin, browser):
    campaign = create(admin)
    make(admin, "a", campaign_id=campaign["id"])
    page = press(browser, f"/campaigns/{campaign['id']}", "/delete")
    assert (page.status, "coupon" in page.text) == (400, True)


def test_pause_and_resume(admin, browser):
    campaign = create(admin)
    path = f"/campaigns/{campaign['id']}"
    for active in (False, True):
        page = press(browser, path, "/active")
        assert page.location == f"/admin{path}?done=saved"
        assert read(admin, campaign)["active"] is active
    coupon = make(admin, "a")
    for state in ("Paused", "Active"):
        press(browser, f"/coupons/{coupon['id']}", "/active")
        assert f"a {state}" in browser.get(f"/coupons/{coupon['id']}").text


def test_one_campaign_shows_its_figures_coupons_and_batches(admin, browser):
    campaign = create(admin, usage_limit=10, budget="100")
    path, number = f"/campaigns/{campaign['id']}", campaign["id"]
    text = browser.get(path).text
    assert "No use of its coupons is confirmed yet." in text
    assert "No codes were generated for it yet." in text
    for name in ("alone", "best", "other"):
        make(admin, name, campaign_id=0 if name == "alone" else number)
    for code, amount in (("alone", "9"), ("best", "40"), ("other", "30")):
        use(admin, code, amount)
    body = {"generate": {"count": 3, "name": "Letters", "coupon": {"campaign_id": number}}}
    batch = admin.post("/coupons/generate", body).get_json()["batch"]["id"]
    text = browser.get(path).text
    assert "Uses 2 of 10, 8 left Discount $70.00 of $100.00, $30.00 left Coupons 5" in text
    assert re.search("best Uses 1 Discount .40.00 .* other Uses 1 Discount .30.00", text)
    assert "alone" not in text
    assert "Letters" in text
    assert "Mailing Active" in browser.get(f"/batches/{batch}").text
    assert "Letters Campaign: Mailing" in browser.get("/batches").text
    admin.put(path, {"campaign": {"budget": "1"}})
    text = browser.get(path).text
    assert "of $1.00, $0.00 left" in text


def test_generating_codes_for_a_campaign(admin, browser):
    campaign = create(admin, "Spring mailing")
    link = f"/batches/new?campaign={campaign['id']}"
    assert f'href="/admin{link}"' in browser.get(f"/campaigns/{campaign['id']}").html
    form = browser.get(link).form("_form")
    assert (form["name"], form["coupon.campaign_id"]) == ("Spring mailing", str(campaign["id"]))
    page = browser.post("/batches/new", form | {"count": "2", "coupon.amount": "5"})
    assert page.status == 303, page.text
    assert admin.get("/coupons/count", {"campaign": campaign["id"]}).get_json() == {"count": 2}
    assert browser.get("/batches/new?campaign=999").form("_form")["coupon.campaign_id"] == ""


def test_coupons_are_filtered_by_campaign_and_moved(admin, browser):
    coupons = [make(admin, code) for code in ("one", "two", "three")]
    page = browser.get("/coupons")
    assert "Move to campaign" not in page.text, "a shop without campaigns"
    assert "All campaigns" not in page.text
    summer, winter = create(admin, "Summer"), create(admin, "Winter")
    text = browser.get("/coupons").text
    assert "Campaign Winter Summer No campaign" in text
    assert "Move to campaign" in text
    sent = {"action": "move", "campaign_id": str(summer["id"])}
    page = browser.post("/coupons/selected", sent | {"id": [each["id"] for each in coupons[:2]]})
    assert "2 records done" in page.text
    assert [campaign_of(admin, each) for each in coupons] == [summer["id"], summer["id"], None]
    page = browser.get(f"/coupons?campaign={summer['id']}")
    assert {code for code in ("one", "two", "three") if f">{code}</a>" in page.html} == {
        "one",
        "two",
    }
    sent = {"action": "move", "everything": "1", "query": f"campaign={summer['id']}"}
    page = browser.post("/coupons/selected", sent | {"campaign_id": str(winter["id"])})
    assert "2 records done" in page.text
    assert campaign_of(admin, coupons[0]) == winter["id"]
    page = browser.post(
        "/coupons/selected", sent | {"campaign_id": "", "query": f"campaign={winter['id']}"}
    )
    assert campaign_of(admin, coupons[0]) is None
    assert browser.post("/coupons/selected", {"action": "move", "campaign_id": "9"}).status == 400
    events = admin.get("/events", {"type": "coupon.updated", "limit": 50}).get_json()["events"]
    assert len(events) == 6


def test_one_coupon_shows_the_state_of_its_campaign(admin, browser):
    campaign = create(admin, "Spring mailing", active=False)
    coupon = make(admin, "a", campaign_id=campaign["id"])
    page = browser.get(f"/coupons/{coupon['id']}")
    assert "a Active Campaign: Paused" in page.text
    assert f'<a href="/admin/campaigns/{campaign["id"]}">Spring mailing</a>' in page.html
    assert "Campaign: Paused" in browser.get("/coupons").text
    admin.put(f"/campaigns/{campaign['id']}", {"campaign": {"active": True}})
    assert "Campaign: " not in browser.get(f"/coupons/{coupon['id']}").text
    form = browser.get(f"/coupons/{coupon['id']}/edit").form("_form")
    assert form["campaign_id"] == str(campaign["id"])
    browser.post(f"/coupons/{coupon['id']}/edit", form | {"campaign_id": ""})
    assert campaign_of(admin, coupon) is None


def test_campaigns_of_the_same_name_are_told_apart(admin, browser):
    first, second = create(admin, "Sale"), create(admin, "Sale")
    page = browser.get("/coupons/new")
    for each in (first, second):
        assert f'<option value="{each["id"]}">Sale (#{each["id"]})</option>' in page.html


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"amount": ""}, "The discount is 0."),
        ({"amount": "0"}, "The discount is 0."),
        ({"amount": "150"}, "more than 100%"),
        ({"amount": "101", "type": "buy_x_get_y"}, "more than 100%"),
        ({"expiry_date": PAST[:10]}, "is not in the future"),
        ({"expiry_date": FUTURE[:10], "starts_at": FUTURE}, "It starts after it expires"),
        ({"first_order_only": "true"}, "several unpaid orders"),
        ({"amount": "", "enable_free_shipping": "true"}, ""),
        ({"amount": "150", "type": "fixed_cart"}, ""),
        ({"first_order_only": "true", "usage_limit_per_user": "1"}, ""),
    ],
)
def test_what_is_rarely_meant_is_saved_after_a_second_press(admin, browser, given, text):
    page = browser.submit("/coupons/new", "_form", **{"code": "a", "amount": "5"} | given)
    if text:
        assert (page.status, text in page.text) == (409, True), page.text
        assert "press “Create coupon” again" in page.text
        assert admin.get("/coupons/count").get_json() == {"count": 0}
        page = browser.post("/coupons/new", page.form("_warned"))
    assert page.status == 303, page.text
    (coupon,) = admin.get("/coupons").get_json()["coupons"]
    # What was there before is not asked for again.
    edited = browser.submit(f"/coupons/{coupon['id']}/edit", "_form", description="rare")
    assert edited.status == 303, edited.text
    assert stored(admin, coupon["id"])["description"] == "rare"


def test_another_value_that_is_rarely_meant_is_asked_for_again(admin, browser):
    page = browser.submit("/coupons/new", "_form", code="a", amount="")
    page = browser.post("/coupons/new", page.form("_warned") | {"amount": "1000"})
    assert (page.status, "more than 100%" in page.text) == (409, True)
    page = browser.post("/coupons/new", page.form("_warned") | {"amount": "wrong"})
    assert (page.status, "field-amount-error" in page.html) == (400, True)


def test_a_batch_and_a_campaign_ask_in_the_same_way(admin, browser):
    page = browser.submit("/batches/new", "_form", count="2")
    assert (page.status, "The discount is 0." in page.text) == (409, True)
    assert browser.post("/batches/new", page.form("_warned")).status == 303
    page = browser.submit("/campaigns/new", "_form", name="Old", ends_at=PAST)
    assert (page.status, "The end is in the past" in page.text) == (409, True)
    assert browser.post("/campaigns/new", page.form("_warned")).status == 303
    assert admin.get("/campaigns").get_json()["campaigns"][0]["state"] == "ended"


def test_times_are_entered_in_the_zone_of_the_shop_with_utc_below(app, admin, browser, monkeypatch):
    monkeypatch.setitem(app.config, "SHOP_TIMEZONE", "America/New_York")
    page = browser.submit("/campaigns/new", "_form", name="Mailing", starts_at="2030-07-01T09:00")
    assert page.status == 303, page.text
    (campaign,) = admin.get("/campaigns").get_json()["campaigns"]
    assert campaign["starts_at"] == "2030-07-01T13:00:00Z"
    page = browser.get(f"/campaigns/{campaign['id']}/edit")
    assert page.form("_form")["starts_at"] == "2030-07-01T09:00"
    assert "Jul 1, 2030, 13:00 UTC" in page.text
    for wrong in ("tomorrow", "9999-12-31T23:59"):
        page = browser.submit("/campaigns/new", "_form", name="Mailing", starts_at=wrong)
        assert page.status in {303, 400}, page.text


def test_a_time_that_clocks_skip_is_an_error(app, admin, browser, monkeypatch):
    monkeypatch.setitem(app.config, "SHOP_TIMEZONE", "America/New_York")
    page = browser.submit("/campaigns/new", "_form", name="Mailing", starts_at="2030-03-10T02:30")
    assert page.status == 400
    assert "a time that the clocks of the shop show" in page.text
    assert page.form("_form")["starts_at"] == "2030-03-10T02:30"
    for exists in ("2030-03-10T03:00", "2030-11-03T01:30"):
        page = browser.submit("/campaigns/new", "_form", name="Mailing", starts_at=exists)
        assert page.status == 303, page.text


def test_the_first_years_have_four_digits_in_a_form(admin, browser):
    """Programs of .NET send the year 1 for no date. A browser does not show other years."""
    campaign = create(admin, "Mailing", starts_at="0001-01-01T00:00:00Z")
    page = browser.get(f"/campaigns/{campaign['id']}/edit")
    assert page.form("_form")["starts_at"] == "0001-01-01T00:00"


@pytest.mark.parametrize(("active", "note"), [(True, False), (False, True)])
def test_the_copy_of_a_paused_coupon_is_paused(admin, browser, active, note):
    coupon = make(admin, "a", amount="5", active=active)
    page = browser.get(f"/coupons/new?from={coupon['id']}")
    assert ("The original is paused, so the copy is paused, too." in page.text) == note
    assert browser.post("/coupons/new", page.form("_form")).status == 303
    query = {"code": "a-copy", "fields": "active"}
    (copy,) = admin.get("/coupons", query).get_json()["coupons"]
    assert copy["active"] is active


def test_a_field_that_a_request_did_not_write_has_not_changed(admin, browser):
    coupon = make(admin, "a", starts_at="2030-05-01T00:00:00Z", tags=["spring"])
    path = f"/coupons/{coupon['id']}"
    admin.put(path, {"coupon": {"description": "later"}})
    admin.put(path, {"coupon": {"tags": ["summer"], "active": False}})
    admin.delete(path)
    admin.post(f"{path}/restore")
    history = browser.get(path).text.partition(" History ")[2].partition(" Details ")[0]
    assert "Description \u2013 \u2192 later" in history
    assert "spring \u2192 summer" in history
    assert "Active yes \u2192 no" in history
    assert "Starts at" not in history


def test_the_search_in_the_head_finds_campaigns(admin, browser, new_browser):
    campaign = create(admin, "Spring mailing", tags=["letters"])
    path = f"/admin/campaigns/{campaign['id']}"
    assert browser.get("/search?q=spring").location == path
    make(admin, "spring")
    assert browser.get("/search?q=spring").location.startswith("/admin/coupons/"), "an exact code"
    make(admin, "springtime")
    assert f'href="{path}"' in browser.get("/search?q=sprin").html
    assert "Nothing matches" in browser.get("/search?q=letters").text, "a tag is no name"
    limited = new_browser("bob", "administrator", "read", ["orders"])
    assert path not in limited.get("/search?q=sprin").html
