"""Translation: each text of each page is a message of the catalog that Babel extracts (admin 2)."""

import io
import re
from datetime import timedelta
from decimal import Decimal
from gettext import GNUTranslations
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import orjson
import pytest
from sqlalchemy import insert, update

from app.db.session import now, run_in_transaction
from app.errors import Sentence, ShopError
from app.import_export.stored_files import import_next_part
from app.models import IMPORT_RUNS
from app.plugins import admin as admin_package
from app.plugins.admin import history, html, reports, texts
from app.schemas.campaigns import CampaignSchema
from app.schemas.coupons.coupon import CouponSchema
from app.schemas.fields import output as fields
from app.schemas.orders.order import OrderSchema
from app.schemas.orders.refund import OrderRefundSchema
from app.services.coupons.refusals import refusals_of
from app.services.maintenance.import_runs import report_interrupted_imports
from tests.plugins.admin.browser_client import Browser
from tests.plugins.admin.test_data import send
from tests.plugins.admin.test_rights import pages

pytestmark = pytest.mark.one_database

extract = pytest.importorskip("babel.messages.extract")
catalogs = pytest.importorskip("babel.messages.catalog")
frontend = pytest.importorskip("babel.messages.frontend")
mofile = pytest.importorskip("babel.messages.mofile")
pofile = pytest.importorskip("babel.messages.pofile")

ROOT = Path(admin_package.__file__).parents[3]

VALUES = re.compile(
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-9]+|[0-9:]+ UTC|[0-9a-f]{7,}"
    r"|[a-z_]+\.([a-z]+|\*)|https://[0-9./]+|1@2.example|1.1.1.1|1.csv|[A-Z]{3}|administrator"
    r"|rest-api|Deutsch|Werkzeug|curl|Python|on-hold|completed|Order status changed.*|amount: write a number.*"
)
"""What is no text: dates, IDs, event types, addresses, names. The records of the shop are digits."""


@pytest.fixture(scope="module")
def messages():
    """The messages that ``pybabel extract --mapping tools/babel.cfg app/plugins/admin`` collects."""
    with (ROOT / "tools" / "babel.cfg").open() as file:
        mapping = frontend.parse_mapping_cfg(file)
    found = extract.extract_from_dir(ROOT / "app" / "plugins" / "admin", *mapping)
    return {message for _file, _line, message, *_rest in found}


@pytest.fixture
def browser(messages, monkeypatch, make_app, admin):
    """A browser whose pages have each message in brackets, from the catalog of a translator."""

    def marked(message):
        return f"⟦{message}⟧"

    catalog = catalogs.Catalog("en")
    for each in messages:
        catalog.add(each, marked(each) if isinstance(each, str) else tuple(map(marked, each)))
    file = io.BytesIO()
    mofile.write_mo(file, catalog)
    file.seek(0)
    translations = GNUTranslations(file)
    monkeypatch.setattr(texts, "_catalog", lambda: translations)
    return Browser(make_app(SHOP_NAME="7", SHOP_CURRENCY="EUR"), admin.key)


class _Texts(HTMLParser):
    """What people read or hear of a page, without code and what was typed."""

    def __init__(self):
        super().__init__()
        self.found, self._within = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in {"input", "meta", "link", "br"}:
            self._within.append(tag)
        shown = {"aria-label", "placeholder", "alt", "title" if tag != "time" else ""}
        self.found += [value for name, value in attributes if name in shown]

    def handle_startendtag(self, tag, attributes):
        """Skip parts of pictures."""

    def handle_endtag(self, tag):
        while self._within.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"code", "pre", "time", "kbd", "textarea"} & set(self._within):
            self.found.append(data)


def catalog_of(language):
    with (texts.FOLDER / language / "LC_MESSAGES" / "admin.po").open("rb") as file:
        return pofile.read_po(file, locale=language)


@pytest.mark.parametrize("language", [name for name in texts.LANGUAGES if name != "en"])
def test_every_text_has_a_translation(language, messages):
    found = {entry.id: entry for entry in catalog_of(language) if entry.id}
    assert found.keys() == messages
    incomplete = [
        entry.id
        for entry in found.values()
        if entry.fuzzy or not all([entry.string] if isinstance(entry.string, str) else entry.string)
    ]
    assert incomplete == []


@pytest.mark.parametrize("language", [name for name in texts.LANGUAGES if name != "en"])
def test_translations_keep_placeholders_and_code(language):
    def kept(text):
        return sorted(re.findall(r"%\(\w+\)s|\{[^}]+\}|`[^`]+`", text))

    for entry in catalog_of(language):
        pairs = (
            [(entry.id, entry.string)]
            if isinstance(entry.id, str)
            else zip(entry.id, entry.string, strict=True)
        )
        assert [text for text, shown in pairs if text and kept(text) != kept(shown)] == []


@pytest.mark.parametrize("language", [name for name in texts.LANGUAGES if name != "en"])
def test_compiled_translations_are_current(language):
    compiled = io.BytesIO()
    mofile.write_mo(compiled, catalog_of(language))
    stored = texts.FOLDER / language / "LC_MESSAGES" / "admin.mo"
    assert stored.read_bytes() == compiled.getvalue(), "run make translations"


@pytest.mark.parametrize(
    ("accepted", "chosen", "language"),
    [
        ("de-AT,de;q=0.9,en;q=0.5", "", "de"),
        ("de-AT,en;q=0.5", "", "de"),
        ("en-GB,de;q=0.5", "", "en"),
        ("de;q=0,fr", "", "en"),
        ("fr,en;q=0.5,de;q=0.3", "", "en"),
        ("fr", "", "en"),
        ("", "", "en"),
        ("de", "en", "en"),
        ("en", "de", "de"),
        ("de", "xx", "de"),
    ],
)
def test_language_is_chosen_or_that_of_the_browser(app, accepted, chosen, language):
    client = app.test_client()
    if chosen:
        client.set_cookie(texts.COOKIE, chosen)
    page = client.get("/admin/sign-in", headers={"Accept-Language": accepted}).text
    assert f'<html lang="{language}">' in page
    assert ("Anmelden" in page) == (language == "de")


def test_choosing_a_language_returns_to_the_page(make_app, admin):
    browser = Browser(make_app(), admin.key)
    there = browser.post("/language", {"language": "de", "next": "/admin/coupons?state=trash"})
    assert (there.status, there.location) == (303, "/admin/coupons?state=trash")
    assert "Der Papierkorb ist leer." in browser.get("/coupons?state=trash").html
    browser.post("/language", {"language": "tlh", "next": "https://evil.example/"})
    page = browser.get("/coupons/new", headers={"Accept-Language": "en"})
    assert "Gutschein anlegen" in page.html


def test_german_pages_write_numbers_dates_and_errors_in_german(make_app, admin):
    admin.post("/coupons", {"coupon": {"code": "a", "type": "fixed_cart", "amount": "1234.5",
                                       "expiry_date": "2031-03-02"}})  # fmt: skip
    admin.post("/coupons", {"coupon": {"code": "half", "type": "percent", "amount": "12.50"}})
    app = make_app(SHOP_CURRENCY="EUR", SHOP_TIMEZONE="UTC")
    with app.test_request_context(headers={"Accept-Language": "de"}):
        assert reports.change(Decimal("100.5"), Decimal(100)) == "↑ 0,5% mehr"
        assert reports.short(Decimal(1500)) == "1,5k"
    browser = Browser(app, admin.key)
    browser.post("/language", {"language": "de"})
    page = browser.get("/coupons").html
    assert "1.234,50\N{NO-BREAK SPACE}€" in page
    assert "1. März 2031" in page
    assert "12,5%" in page
    page = browser.submit("/coupons/new", "_form", code="a", amount="5").html
    assert "Ein anderer veröffentlichter Gutschein hat schon diesen Code." in page
    page = browser.submit("/coupons/new", "_form", code="b", usage_limit="x").html
    assert "Schreiben Sie eine ganze Zahl ohne Trennzeichen" in page


def test_the_history_shows_values_in_the_language_of_the_page(make_app, admin):
    coupon = {"code": "10.00", "type": "percent", "amount": "12.5", "usage_limit": 1000,
              "metadata": {"total": "1234.50", "end_date": "2031-03-02T00:00:00Z"}}  # fmt: skip
    coupon_id = admin.post("/coupons", {"coupon": coupon}).json["coupon"]["id"]
    after = {"code": "20.00", "type": "fixed_cart", "amount": "1234.5", "usage_limit": 2000,
             "minimum_amount": "3000", "expiry_date": "2031-03-02", "product_ids": [1234],
             "metadata": {"total": "2.50", "end_date": "2031-04-02T00:00:00Z"}}  # fmt: skip
    admin.put(f"/coupons/{coupon_id}", {"coupon": after})
    line = {"name": "Cup", "price": "1500", "quantity": 2000}
    shipping = {"method_id": "post", "total": "5"}
    order = {"currency": "CHF", "line_items": [line], "shipping_lines": [shipping]}
    order = admin.post("/orders", {"order": order}).json["order"]
    path = f"/orders/{order['id']}"
    lines = {name: [{"id": order[name][0]["id"], "total": total}]
             for name, total in (("line_items", "1000"), ("shipping_lines", "2500"))}  # fmt: skip
    admin.put(path, {"order": lines})
    admin.post(f"{path}/refunds", {"order_refund": {"amount": "1100"}})
    browser = Browser(make_app(SHOP_CURRENCY="EUR", SHOP_TIMEZONE="UTC"), admin.key)
    browser.post("/language", {"language": "de"})
    eur, chf = "\N{NO-BREAK SPACE}€", "\N{NO-BREAK SPACE}CHF"
    event = admin.get("/events?filter[type]=coupon.updated").json["events"][-1]["id"]
    for page in (f"/coupons/{coupon_id}", f"/events/{event}"):
        shown = browser.get(page).html
        for old, new in (("12,5%", f"1.234,50{eur}"), (f"0,00{eur}", f"3.000,00{eur}"),
                         ("1.000", "2.000"), (html.NONE, "2. März 2031"), ("10.00", "20.00"),
                         (html.NONE, "1234"), ("1234.50", "2.50"),
                         ("2031-03-02T00:00:00Z", "2031-04-02T00:00:00Z")):  # fmt: skip
            assert f"<del>{old}</del> → <ins>{new}</ins>" in shown, (page, new)
    shown = browser.get(path).html
    assert f"3.000.000,00{chf}, " in shown
    assert f"<del>3.000.005,00{chf}</del> → <ins>3.500,00{chf}</ins>" in shown
    assert f"<ins>1.100,00{chf}</ins>" in shown
    assert re.search(rf"<ins>#\d+ \w+ 2\.500,00{chf}</ins>", shown)


def test_every_amount_and_number_of_a_record_is_one_in_its_history():
    found = {fields.Amount: set(), fields.Number: set(), fields.Limit: set()}

    def search(schema):
        for name, field in schema._declared_fields.items():
            found.get(type(field), set()).add(name)
            for each in ("line", "part", "nested", "described_by"):
                search(getattr(field, each)) if hasattr(field, each) else None

    for schema in (CampaignSchema, CouponSchema, OrderSchema, OrderRefundSchema):
        search(schema)
    computed = {"uses", "total_spent"}
    ids = {"rate_id", "variation_id"}
    assert found[fields.Amount] - computed <= history.AMOUNTS
    assert (found[fields.Number] | found[fields.Limit]) - computed - ids <= history.NUMBERS


def test_german_forms_state_reasons_with_values_in_german(make_app, admin):
    line = {"name": "1", "price": "5", "quantity": 2}
    order = admin.post("/orders", {"order": {"status": "processing", "line_items": [line]}})
    browser, number = Browser(make_app(), admin.key), order.json["order"]["id"]
    browser.post("/language", {"language": "de"})
    for path, values, text in (
        (f"/orders/{number}/refund", {"amount": "11"}, "Darf höchstens 10.00 sein."),
        ("/orders/new", {"line_items.-1.quantity": "0", "line_items.-1.name": "1",
                         "line_items.-1.price": "5"}, "Muss zwischen 1 und"),
        ("/orders/new", {"line_items.-1.name": "1", "line_items.-1.quantity": "1"},
         "Braucht einen Preis."),
        ("/coupons/new", {"code": "1", "tags": "-1"}, "Der Eintrag an Stelle 0 darf nicht mit"),
    ):  # fmt: skip
        assert text in browser.submit(path, "_form", **values).text, path


@pytest.mark.parametrize("language", [name for name in texts.LANGUAGES if name != "en"])
def test_sentences_with_values_are_translated(app, language):
    shown = {entry.id: entry.string for entry in catalog_of(language) if "{0" in entry.id}
    assert len(shown) > 25
    with app.test_request_context(headers={"Accept-Language": language}):
        for template, translated in shown.items():
            values = [71 + number for number in range(4)]
            assert texts.of_api(Sentence(template, *values)) == translated.format(*values)


def test_sentences_within_sentences_are_translated(app):
    hint = Sentence(" Did you mean {0}?", "'is required.'")
    column = Sentence("line {0}: the column {1} is not imported.{2}", 3, "'abc'", hint)
    stored = Sentence.of(orjson.loads(orjson.dumps(column, Sentence.plain)))
    line = Sentence("The line {0}", "is required.")
    with app.test_request_context(headers={"Accept-Language": "de"}):
        for each in (column, stored):
            assert texts.of_api(each) == (
                "Zeile 3: Die Spalte 'abc' wird nicht importiert. Ist 'is required.' gemeint?"
            )
        assert texts.of_api(line) == "Die Zeile ist erforderlich."
        paused = ShopError("shop_api_webhook_not_active", status=Sentence("paused")).sentence()
        assert texts.of_api(paused) == "Der Webhook ist pausiert. Aktivieren Sie ihn zuerst."
        large = ShopError("shop_api_cart_request_entity_too_large", limit=9, what=Sentence("items"))
        assert (
            texts.of_api(large.sentence()) == "Ein Warenkorb kann höchstens 9 Positionen enthalten."
        )
    assert str(stored) == str(column)


def test_german_pages_state_what_was_rejected_in_german(make_app, admin):
    browser = Browser(make_app(SHOP_WEBHOOK_ALLOWED_NETWORKS=""), admin.key)
    browser.post("/language", {"language": "de"})
    webhook = {"topics": "coupon.*", "delivery_url": "http://127.0.0.1/"}
    assert (
        "Die Zustelladresse ist nicht erlaubt: 127.0.0.1 ist nicht weltweit erreichbar. Webhooks"
    ) in browser.submit("/webhooks/new", "_form", **webhook).text
    assert "Meinten Sie /admin/coupons?" in browser.get("/coupon").text
    assert "Diese Anfrage wurde abgelehnt" in browser.get("/orders?status=no").text
    few = browser.submit("/batches/new", "_form", count="5", pattern="##").text
    assert "Das Muster ergibt 1.024 Codes, braucht für so viele Gutscheine aber 5.000.000." in few
    for content, text in (
        (b"PK\x03\x04", "Die Datei ist eine Arbeitsmappe oder eine andere ZIP-Datei."),
        ("code\n", "Zeile 1: Sie enthält keine Datensätze."),
        (
            "code,usage_limt\n1,2\n",
            "Die Spalte 'usage_limt' wird nicht importiert. Ist 'usage_limit' gemeint?",
        ),
        ("code,usage_limit\n1,1.000\n", "usage_limit: '1.000' ist mehrdeutig. Schreiben Sie 1000"),
        ("Code,CODE\n1,2\n", "'code' kommt zweimal vor, geschrieben als 'CODE' und 'Code'."),
        ("code,type\n1\n", "Die Zeile hat 1 Zellen, die Kopfzeile aber 2."),
    ):
        page, path = send(browser, content)
        assert text in unescape(page.text)
    reason = "The personal data of a person in the file was erased."
    with browser.app.app_context():
        of_import = update(IMPORT_RUNS).where(IMPORT_RUNS.c.id == int(path.rpartition("/")[2]))
        cancelled = of_import.values(status="cancelled", finished_at=now(), reason=reason)
        run_in_transaction(lambda session: session.execute(cancelled))
    assert (
        "Die persönlichen Daten einer Person in der Datei wurden gelöscht" in browser.get(path).text
    )
    again = browser.post(f"{path.removeprefix('/admin')}/cancel", {})
    assert "Zustand des Imports: abgebrochen." in again.text


def test_german_pages_state_in_german_why_something_was_stopped(app, admin, client_for):
    hook = {"topics": ["coupon.*"], "delivery_url": "https://1.1.1.1/", "status": "disabled"}
    number = admin.post("/webhooks", {"webhook": hook}).json["webhook"]["id"]
    other = client_for("shop_manager")
    sent = other.request("POST", "/imports?kind=coupons", data="code\n1\n", content_type="text/csv")
    admin.delete(f"/keys/{other.key.key_id}")
    with app.app_context():
        assert import_next_part()
        killed = {"source": "file", "kind": "coupons", "created": 0, "updated": 0, "size": 0}
        killed |= {"progress_at": now() - timedelta(days=1)}
        start = insert(IMPORT_RUNS).values(killed).returning(IMPORT_RUNS.c.id)
        command = run_in_transaction(lambda session: session.scalar(start))
        assert report_interrupted_imports() == 1
    browser = Browser(app, admin.key)
    browser.post("/language", {"language": "de"})
    failed = sent.get_json()["import"]["id"]
    for path, text in (
        (f"/webhooks/{number}", "Von einem Benutzer abgeschaltet."),
        (f"/webhooks/{number}?ping=timeout&ms=1", "Zeitüberschreitung"),
        (f"/webhooks/{number}?ping=refused+address&ms=1", "Webhooks werden nur an"),
        (f"/data/imports/{failed}", "Der Schlüssel, der den Import gestartet hat, hat seine"),
        (f"/data/imports/{command}", "Der Prozess des Befehls wurde beendet."),
    ):
        assert text in unescape(browser.get(path).text), path


def test_german_sentences_separate_thousands_as_the_language_does(app):
    long = Sentence("is longer than {0:,} characters.", 65536)
    file = ShopError("shop_api_invalid_import", reason=Sentence("{0:,}", 1_000_000)).sentence()
    assert str(long) == "is longer than 65,536 characters."
    with app.test_request_context(headers={"Accept-Language": "de"}):
        assert texts.of_api(long) == "ist länger als 65.536 Zeichen."
        assert texts.of_api(file) == "1.000.000"
    with app.test_request_context(headers={"Accept-Language": "en"}):
        assert texts.of_api(long) == str(long)


def test_german_pages_state_reasons_in_german(make_app, admin):
    customer = admin.post("/customers", {"customer": {"email": "1@2.example"}}).json["customer"]
    order = {"customer_id": customer["id"], "order_number": "7", "status": "processing"}
    assert admin.post("/orders", {"order": order}).status_code == 201
    coupon = admin.post("/coupons", {"coupon": {"code": "1"}}).json["coupon"]
    for amount in ("3", "4"):
        admin.put(f"/coupons/{coupon['id']}", {"coupon": {"minimum_amount": amount}})
    events = admin.get("/events", {"resource": "coupon"}).json["events"]
    created, first, *_ = (f"/events/{event['id']}" for event in events)
    browser = Browser(make_app(), admin.key)
    browser.post("/language", {"language": "de"})
    merge = f"/customers/{customer['id']}/merge?customer_id={admin.key.user_id}"
    for path, text in (
        (merge, "Es ist Ihr eigenes Konto."),
        (
            f"/privacy?customer_id={admin.key.user_id}",
            "Sie können Ihr eigenes Konto nicht löschen.",
        ),
        (f"/privacy?customer_id={customer['id']}", "Offene Bestellungen: 7 (processing)."),
        (
            first,
            "nicht rückgängig gemacht werden. Diese Felder haben sich seitdem geändert: Mindestbestellwert.",
        ),
    ):
        assert text in browser.get(path).text, path
    assert "rückgängig" not in browser.get(created).text


LINES = {
    ",percent,1,,,": "Der Gutschein kann nicht angelegt werden: der Code ist leer.",
    "a,wrong,1,,,": "Ungültige Art des Gutscheins. Möglich sind: fixed_cart, percent,",
    "b,percent,x,,,": "amount: Schreiben Sie eine Zahl mit Punkt, zum Beispiel 1000.50.",
    "c,percent,1.005,,,": "amount: '1.005' ist mehrdeutig. Schreiben Sie 1005 oder einen Betrag",
    "d,percent,1,-3,,": "usage_limit: '-3' ist keine ganze Zahl.",
    "e,percent,1,,32.13.2020,": "expiry_date: ist kein gültiges Datum.",
    "f,percent,1,,,x": "product_ids: 'x' ist keine ID.",
    f"h,percent,1,,,{10**20}": "product_ids: der Eintrag an Stelle 0 ist zu groß.",
    "taken,percent,1,,,": "Ein anderer veröffentlichter Gutschein hat schon diesen Code.",
    "g,percent,1": "Die Zeile hat 3 Zellen, die Kopfzeile aber 6.",
}
"""Lines of a file, and the beginning of their errors on a German page."""


def test_german_pages_say_in_german_what_is_wrong_with_a_file(app, admin, make_coupon):
    make_coupon(code="taken")
    header = "code,type,amount,usage_limit,expiry_date,product_ids"
    sent = admin.request(
        "POST", "/imports?kind=coupons", data="\n".join((header, *LINES)), content_type="text/csv"
    )
    with app.app_context():
        assert import_next_part()
    browser = Browser(app, admin.key)
    browser.post("/language", {"language": "de"})
    page = browser.get(f"/data/imports/{sent.get_json()['import']['id']}").text
    page = unescape(page)
    assert [text for text in LINES.values() if text not in page] == []
    page, _path = send(browser, "code,kode\na,b\n", checks=False)
    assert "Zeile 1: Die Spalte 'kode' wird nicht importiert. Ist 'code' gemeint?" in unescape(
        page.text
    )


def test_try_it_states_its_reasons_in_german(app, admin, make_coupon):
    first = {"code": "1", "type": "buy_x_get_y", "buy_quantity": 5, "get_quantity": 1}
    coupons = [
        make_coupon(minimum_amount="200.00", expiry_date="2020-01-01", product_ids=[7], **first),
        make_coupon(code="2", usage_limit=1, active=False, customer_emails=["1@2.example"]),
    ]
    use = {"code": "2", "reference": "1", "email": "1@2.example"}
    admin.put(f"/coupons/{coupons[1]['id']}", {"coupon": {"active": True}})
    assert admin.post("/redemptions", {"redemption": use}).status_code == 201
    browser = Browser(app, admin.key)
    browser.post("/language", {"language": "de"})
    found = ""
    for coupon in coupons:
        item = {"items.0.price": "100.00", "items.0.quantity": "1"}
        found += browser.submit(f"/coupons/{coupon['id']}/try", "_form", **item).text
    for text in (
        "Die Zwischensumme von 100.00 liegt unter dem Mindestbetrag von 200.00.",
        "Der Gutschein ist am 2020-01-01 abgelaufen.",
        "Kein Artikel gehört zu den Produkten oder Kategorien des Gutscheins.",
        "Der Gutschein hat seine Grenze von 1 Verwendungen erreicht.",
        "Der Gutschein gilt nicht für die E-Mail-Adresse des Kunden.",
    ):
        assert text in found


def untranslated(page):
    """Return the texts of a page outside of brackets, which can be nested and contain elements."""
    parser = _Texts()
    parser.feed(page.html)
    text = "\0".join(parser.found)
    while text != (text := re.sub("⟦[^⟦⟧]*⟧", "", text)):
        pass
    parts = (VALUES.sub("", each) for each in text.split("\0"))
    return {" ".join(each.split()) for each in parts if re.search("[A-Za-z]", each)}


@pytest.fixture
def ids(browser, admin):
    """The records of a shop with a record of each kind, whose texts are digits."""

    def create(path, key, **values):
        response = admin.post(path, {key: values})
        assert response.status_code == 201, response.json
        return next(iter(response.json.values()))["id"]

    items = [{"name": "1", "price": "5", "quantity": 1, "product_id": 7}]
    coupon = create("/coupons", "coupon", code="1", usage_limit=5, individual_use=True,
                    minimum_amount="5", expiry_date="2030-01-01")  # fmt: skip
    admin.put(f"/coupons/{coupon}", {"coupon": {"description": "2", "amount": "3"}})
    customer = create("/customers", "customer", email="1@2.example", username="123", first_name="1",
                      billing_address={"city": "1"})  # fmt: skip
    order = create("/orders", "order", customer_id=customer, line_items=items, note="1",
                   status="completed", shipping_lines=[{"method_id": "1", "total": "1"}])  # fmt: skip
    create(f"/orders/{order}/notes", "order_note", note="1", customer_note=True)
    refund = create(f"/orders/{order}/refunds", "order_refund", amount="1")
    admin.put(f"/orders/{order}", {"order": {"status": "on-hold"}})
    use = create("/redemptions", "redemption", code="1", reference="1")
    create("/redemptions", "redemption", code="1", reference="2", email="1@2.example")
    batch = create("/coupons/generate", "generate", count=2, charset="0123456789", pattern="#" * 20)
    webhook = create(
        "/webhooks", "webhook", name="1", topics=["*"], delivery_url="https://1.1.1.1/"
    )
    browser.submit("/invitations/new", "login", login="45")
    for code in ("1", "5"):
        admin.post("/coupons/evaluate", {"cart": {"coupons": [code], "items": []}})
    refusals_of(admin.app).flush()
    content = io.BytesIO(b'code,amount\n11,"1,5"\n12,1\n'), "1.csv"
    sent = browser.post("/data/upload", {"kind": "coupons", "on_conflict": "fail", "file": content},
                        content_type="multipart/form-data")  # fmt: skip
    return {
        "coupon_id": coupon, "customer_id": customer, "order_id": order, "refund_id": refund,
        "redemption_id": use, "batch_id": batch, "webhook_id": webhook,
        "key_id": admin.key.key_id, "event_id": 1, "import_id": sent.location.rpartition("/")[2],
    }  # fmt: skip


@pytest.mark.slow
def test_each_text_of_each_page_is_a_message(app, browser, ids, messages):
    paths = [path for method, path, _needs in pages(app, ids) if method == "GET"]
    more = ["/coupons?state=trash", "/coupons?q=9", "/orders?q=1&page=9", "/search?q=1",
            "/?done=saved", "/events?type=order.created"]  # fmt: skip
    found = {path: page for path in (*paths, *more) if (page := browser.get(path)).status == 200}
    assert len(found) > 35
    tried = {"items.0.price": "50", "items.0.quantity": "1", "_shown": "{}"}
    found |= {
        "a form with an error": browser.submit("/coupons/new", "_form", code=""),
        "a cart": browser.post(f"/coupons/{ids['coupon_id']}/try", tried),
        "a selection": browser.post("/coupons/selected", {"action": "trash", "id": ids["coupon_id"]}),
        "a request": browser.submit("/webhooks/new", "_form", name="1", _show="request",
                                    delivery_url="https://1.1.1.1/"),
        "a new key": browser.submit("/keys/new", "_form", description="1"),
    }  # fmt: skip
    shown = {
        name: untranslated(page)
        for name, page in found.items()
        if page.response.mimetype == "text/html"
    }
    assert {name: texts for name, texts in shown.items() if texts} == {}
