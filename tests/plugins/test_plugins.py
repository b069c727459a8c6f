"""Loading of plugins: rejected plugins, and extensions by plugins (decisions 4, docs/plugins.md)."""

import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import marshmallow as ma
import pytest

from app import blueprints
from app.api.authentication import current_principal
from app.api.blueprint import Blueprint
from app.auth.principals import Capability, Permission
from app.blueprints import PluginError
from app.catalog import EXTENSION, Catalog, DuplicateNameError, current_catalog
from app.config import PLUGINS
from app.errors import ShopError
from app.plugin_api import Dialect, MountedRequests, NewEvent, publish_events, run_in_transaction
from app.plugins import admin as pages
from app.pricing.discounts import COUPON_TYPES
from app.schemas.base import Base
from app.services.api_keys.writes import create_key
from tests.api_client import Client, at_the_same_time
from tests.databases import SECRET
from tests.plugins.admin.browser_client import Browser

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).parents[2]


class Gifts(Base):
    gifts = ma.fields.List(ma.fields.Integer(), required=True)


class Gift:
    """A plugin with a coupon type and routes of its own."""

    @staticmethod
    def init_app(app, api):
        blp = Blueprint("gifts", __name__, url_prefix="/gifts", description="Gifts.")

        @blp.route("")
        @blp.errors("shop_api_user_cannot_read_coupon")
        @blp.response(200, Gifts)
        def list_gifts():
            """List gifts."""
            current_principal().require("shop_api_user_cannot_read_coupon", Capability.LIST_USERS)
            return {"gifts": [current_principal().user_id]}

        @blp.route("/refused")
        def refuse_gift():
            """Reject the gift."""
            raise ShopError("shop_api_invalid_coupon_id")

        api.register_blueprint(blp)
        with app.app_context():
            current_catalog().add_coupon_type("gift")


class Anew:
    """Adds a coupon type that is there already."""

    @staticmethod
    def init_app(app, api):
        app.extensions[EXTENSION].add_coupon_type("percent")


class Reviews:
    """Publishes an event about a coupon."""

    @staticmethod
    def init_app(app, api):
        app.extensions[EXTENSION].add_event_type("coupon.reviewed", "Someone read the coupon.")


class Old:
    """Serves coupons in a dialect of its own."""

    @staticmethod
    def init_app(app, api):
        old = Dialect("old", {"shop_api_": "old_"}, statuses={"trashed": 202}, like_put=["POST"])
        api.mount(old, "/old", "An old API.").register_blueprint(app.blueprints["coupons"])
        prefix = app.config["SHOP_URL_PREFIX"]
        app.wsgi_app = MountedRequests(app.wsgi_app, prefix, "/old/", lambda path: old)


class Failing:
    @staticmethod
    def init_app(app, api):
        raise KeyError("colour")


class Undescribed(ma.fields.String):
    @property
    def openapi(self):
        raise RuntimeError("this field has no schema")


class Vague:
    """A plugin whose views work and cannot be described."""

    @staticmethod
    def init_app(app, api):
        blp = Blueprint("vague", __name__, url_prefix="/vague", public=True)

        @blp.route("")
        @blp.response(200, Base.from_dict({"text": Undescribed()}, name="Vague"))
        def list_vague():
            """List."""
            return {"text": "works"}

        api.register_blueprint(blp)


class Misspelt:
    @staticmethod
    def init_app(app, api):
        Blueprint.errors("shop_api_user_cannot_read_orders")


class Closed:
    init_app = "not a function"


@pytest.fixture
def install(monkeypatch, make_app):
    """Return a function: an app in whose environment these entry points are installed."""

    def make(*doors, **settings):
        found = [EntryPoint(name=name, value=value, group=PLUGINS) for name, value in doors]

        def entry_points(*, group):
            assert group == "shop_api.plugins"
            return found

        monkeypatch.setattr(blueprints, "entry_points", entry_points)
        return make_app(**settings)

    return make


# --- rejected plugins ---

HERE = __name__
TWICE = "Two plugins are named '{}'. Uninstall or rename one of them."

UNIMPORTABLE = "The plugin 'gone' cannot be imported from '{}': {}"

SHUT = "The plugin 'shut' ('{}') has no init_app(app, api)."

MISSING = "no_such_module_of_ours"

REFUSED = [
    ([("gift", f"{HERE}:Gift"), ("gift", f"{HERE}:Anew")], TWICE.format("gift")),
    # the name of a built-in plugin is taken
    ([("coupons", f"{HERE}:Gift")], TWICE.format("coupons")),
    ([("gone", MISSING)], UNIMPORTABLE.format(MISSING, f"No module named '{MISSING}'")),
    (
        [("gone", f"{HERE}:Nothing")],
        UNIMPORTABLE.format(f"{HERE}:Nothing", f"module '{HERE}' has no attribute 'Nothing'"),
    ),
    ([("shut", f"{HERE}:HERE")], SHUT.format(f"{HERE}:HERE")),
    ([("shut", f"{HERE}:Closed")], SHUT.format(f"{HERE}:Closed")),
    ([("fails", f"{HERE}:Failing")], "The plugin 'fails' failed at start: 'colour'"),
    (
        [("misspelt", f"{HERE}:Misspelt")],
        (
            "The plugin 'misspelt' failed at start: unknown error code shop_api_user_cannot_read_orders "
            "(did you mean shop_api_user_cannot_read_order?)"
        ),
    ),
    (
        [("anew", f"{HERE}:Anew")],
        "The plugin 'anew' failed at start: the coupon type 'percent' already exists",
    ),
]


@pytest.mark.parametrize(("doors", "message"), REFUSED)
def test_plugin_that_cannot_be_used_is_named(install, doors, message):
    with pytest.raises(PluginError) as raised:
        install(*doors)
    assert str(raised.value) == message


def test_coupon_type_that_exists_is_rejected_and_changes_nothing():
    ours = Catalog()
    with pytest.raises(DuplicateNameError, match=r"^the coupon type 'percent' already exists$"):
        ours.add_coupon_type("percent")
    assert ours.coupon_types == COUPON_TYPES


# --- accepted plugins ---


def client_on(app, role="administrator"):
    with app.app_context():
        return Client(app, create_key(role, role, Permission("read_write"), ""))


def test_plugins_are_loaded_by_name_after_the_core(app, install):
    first = [blueprints.BUILTIN[0].name, *(door.name for door in blueprints.BUILTIN[1:])]
    other = install(("zebra", f"{HERE}:Gift"), ("ant", "test_plugins_ant"))
    assert other.extensions[EXTENSION].plugins == [*first, "ant", "zebra"]
    assert app.extensions[EXTENSION].plugins == first


@pytest.fixture(autouse=True)
def a_module_with_an_entry_point():
    """``test_plugins_ant``: a plugin is a module, too."""
    module = ModuleType("test_plugins_ant")
    module.init_app = lambda app, api: None
    sys.modules[module.__name__] = module
    yield
    del sys.modules[module.__name__]


def test_plugin_adds_a_coupon_type(app, install):
    client = client_on(install(("gift", f"{HERE}:Gift")))
    made = client.post("/coupons", {"coupon": {"code": "g", "type": "gift"}})
    assert (made.status_code, made.get_json()["coupon"]["type"]) == (201, "gift")
    found = client.get("/coupons", {"filter[type]": "gift"}).get_json()["coupons"]
    assert found == [made.get_json()["coupon"]]
    refused = client.post("/coupons", {"coupon": {"code": "h", "type": "nonsense"}})
    assert (refused.status_code, refused.get_json()) == (
        400,
        {
            "errors": [
                {
                    "code": "shop_api_invalid_coupon_type",
                    "message": "Invalid coupon type - the coupon type must be any of these: "
                    "fixed_cart, percent, fixed_product, percent_product, buy_x_get_y, gift",
                }
            ]
        },
    )


def test_plugin_adds_a_route_behind_credentials(app, install):
    other = install(("gift", f"{HERE}:Gift"))
    admin, customer = client_on(other), client_on(other, "customer")
    answered = admin.get("/gifts")
    assert (answered.status_code, answered.get_json()) == (200, {"gifts": [admin.key.user_id]})
    assert admin.get("/gifts/").status_code == 200
    assert Client(other).get("/gifts").status_code == 401
    assert customer.get("/gifts").get_json()["errors"][0]["code"] == (
        "shop_api_user_cannot_read_coupon"
    )
    assert client_on(app).get("/gifts").status_code == 404


def test_plugin_errors_have_the_error_format(app, install):
    client = client_on(install(("gift", f"{HERE}:Gift")))
    response = client.http.get(
        "/gifts/refused", auth=(client.key.consumer_key, client.key.consumer_secret)
    )
    assert (response.status_code, response.get_json()) == (
        404,
        {
            "errors": [
                {
                    "code": "shop_api_invalid_coupon_id",
                    "message": "No published coupon has this ID.",
                }
            ]
        },
    )


@pytest.mark.slow
def test_plugin_is_documented_below_the_prefix(app, install):
    other = install(("gift", f"{HERE}:Gift"), SHOP_URL_PREFIX="/shop")
    assert client_on(other).get("/shop/gifts").status_code == 200
    document = other.test_client().get("/shop/openapi.json").get_json()
    operation = document["paths"]["/shop/gifts"]["get"]
    assert {name: operation[name] for name in ("operationId", "summary", "tags", "security")} == {
        "operationId": "listGifts",
        "summary": "List gifts.",
        "tags": ["Gifts"],
        "security": [{"basicAuth": []}],
    }
    assert (
        "shop_api_user_cannot_read_coupon"
        in (operation["responses"]["401"]["content"]["application/json"]["examples"])
    )


def test_document_is_built_when_it_is_used_and_fails_each_time(app, install, tmp_path):
    other = install(("vague", f"{HERE}:Vague"))
    client = other.test_client()
    assert client.get("/vague").get_json() == {"text": "works"}
    for _ in range(2):
        assert client.get("/openapi.json").status_code == 500
    written = other.test_cli_runner().invoke(args=["openapi", "write", str(tmp_path / "o.json")])
    expected = "The OpenAPI document cannot be built: this field has no schema"
    assert str(written.exception) == expected


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("plugin", "path", "status"), [(Gift, "/gifts", 200), (Vague, "/vague", 500)]
)
def test_blueprint_that_is_registered_after_the_plugins(app, make_app, plugin, path, status):
    other = make_app()
    api = other.extensions["flask-smorest"]["apis"][""]["ext_obj"]
    plugin.init_app(other, api)
    document = other.test_client().get("/openapi.json")
    assert document.status_code == status
    assert path in document.get_json().get("paths", {}) or status == 500


@pytest.mark.slow
def test_document_is_complete_for_requests_at_the_same_time(session_app, app, make_app):
    expected = session_app.test_client().get("/openapi.json").get_data()
    other = make_app()
    documents = at_the_same_time(
        lambda _: other.test_client().get("/openapi.json").get_data(), range(4)
    )
    assert documents == [expected] * 4


# --- the example that people copy ---


def test_example_of_the_documentation_works(app, install, monkeypatch):
    text = (ROOT / "docs" / "plugins.md").read_text()
    source, *_ = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (group, name, value) = re.search(
        r'```toml\n.*?\[project\.entry-points\."(.+?)"\]\n(\w+) = "(\w+)"', text, re.DOTALL
    ).groups()
    assert group == PLUGINS
    module = ModuleType(value)
    monkeypatch.setitem(sys.modules, value, module)
    exec(compile(source, f"{value}.py", "exec"), module.__dict__)
    client = client_on(install((name, value)))
    card = {"code": "thanks", "type": "gift_card", "amount": "5"}
    made = client.post("/coupons", {"coupon": card})
    assert (made.status_code, made.get_json()["coupon"]["type"]) == (201, "gift_card")
    items = [{"quantity": 2, "price": "1.50"}, {"quantity": 1, "price": "4.00"}]
    cart = {"coupons": ["thanks"], "items": items}
    evaluated = client.post("/coupons/evaluate", {"cart": cart}).get_json()["evaluation"]
    assert [item["discount"] for item in evaluated["items"]] == ["1.00", "4.00"]
    answered = client.get("/gift-cards")
    assert (answered.status_code, answered.get_json()) == (
        200,
        {"gift_cards": [{"code": "thanks", "amount": "5.00"}]},
    )
    assert Client(client.app).get("/gift-cards").status_code == 401


def test_history_names_the_plugin_that_published_an_event(install, admin):
    app = install(("reviews", f"{HERE}:Reviews"))
    client, browser = Client(app, admin.key), Browser(app, admin.key)
    coupon = client.post("/coupons", {"coupon": {"code": "a"}}).get_json()["coupon"]
    data = {"review": {"text": "good"}, "coupon": "a", "redemption": None}
    event = NewEvent("coupon.reviewed", coupon["id"], data)
    with app.app_context():
        run_in_transaction(lambda session: publish_events(session, None, [event]))
    client.put(f"/coupons/{coupon['id']}", {"coupon": {"description": "tea"}})
    shown = browser.get(f"/coupons/{coupon['id']}").text
    assert "Reviewed" in shown
    assert "plugin reviews" in shown
    assert shown.count("plugin") == 1
    assert "A command or the worker" not in shown


def test_the_documented_page_and_panel_of_the_admin_pages(install, monkeypatch, admin):
    text = (ROOT / "docs" / "plugins.md").read_text()
    example = text.split("## Admin pages")[1].split("```python\n")[1].split("```")[0]
    module = ModuleType("shop_gift_card_pages")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(example, module.__dict__)
    app = install(("gift_card_pages", module.__name__))
    coupon = Client(app, admin.key).post("/coupons", {"coupon": {"code": "a"}}).get_json()["coupon"]
    browser = Browser(app, admin.key)
    assert ">Gift cards</a>" in browser.get("/").html
    assert "3 gift cards were sold this week." in browser.get("/x/gift-cards").text
    assert "Gift card Not a gift card." in browser.get(f"/coupons/{coupon['id']}").text
    with app.app_context():
        limited = create_key("eve", "customer", Permission.READ, "")
    browser = Browser(app, limited)
    assert "Gift cards" not in browser.get("/sessions").text
    assert browser.get("/x/gift-cards").status == 401
    with pytest.raises(ValueError, match="has no page"):
        pages.add_panel(app, "webhook", "x", lambda record: "")


@pytest.mark.parametrize("prefix", ["", "/shop"])
def test_plugin_serves_a_dialect(install, admin, prefix):
    app = install(("old", f"{HERE}:Old"), SHOP_URL_PREFIX=prefix)
    client = Client(app, admin.key)
    assert code(client.post(f"{prefix}/OLD/coupons", {})) == (400, "old_missing_coupon_data")
    coupon = client.post(f"{prefix}/old/coupons", {"coupon": {"code": "a"}}).get_json()["coupon"]
    path = f"/coupons/{coupon['id']}"
    assert client.get(f"{prefix}{path}").get_json() == {"coupon": coupon}
    changed = client.post(f"{prefix}/old{path}", {"coupon": {"description": "b"}})
    assert changed.get_json()["coupon"]["description"] == "b"
    assert code(client.post(f"{prefix}{path}", {})) == (405, "shop_api_method_not_allowed")
    assert client.delete(f"{prefix}/old{path}").status_code == 202
    document = client.get(f"{prefix}/old/openapi.json").get_json()
    assert f"{prefix}/old/coupons/{{coupon_id}}" in document["paths"]
    assert "shop_api_" not in app.json.dumps(document)


def code(response):
    return response.status_code, response.get_json()["errors"][0]["code"]


@pytest.mark.slow
def test_the_documented_table_has_a_migration_and_a_command(tmp_path):
    """In processes of their own, because the table belongs to the models of the process."""
    text = (ROOT / "docs" / "plugins.md").read_text()
    section = text.split("## Tables, settings, rights and commands")[1].partition("\n## ")[0]
    files = re.findall(r"`(shop_reviews/[\w/.]+)`", section)
    sources = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    metadata = "shop_reviews-1.0.dist-info/"
    added = {
        **dict(zip(files, sources, strict=True)),
        metadata + "METADATA": "Metadata-Version: 2.1\nName: shop-reviews\nVersion: 1.0\n",
        metadata + "entry_points.txt": f"[{PLUGINS}]\nreviews = shop_reviews\n",
    }
    for name, content in added.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    use = (
        "from app import create_app\n"
        "from shop_reviews import add_review, stars_of\n"
        "from tests.factories import insert_order\n"
        "app = create_app()\n"
        "order_id = insert_order(app)\n"
        "with app.app_context():\n"
        "    add_review(order_id, 4)\n"
        "    print(stars_of(order_id))\n"
    )
    environment = os.environ | {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "DATABASE_URL": f"sqlite:///{tmp_path}/shop.db",
        "SECRET_KEY": SECRET,
    }
    shown = ""
    for arguments in (
        ["-m", "app.main", "db", "upgrade"],
        ["-m", "app.main", "reviews", "upgrade"],
        ["-m", "app.main", "reviews", "upgrade"],
        ["-c", use],
    ):
        done = subprocess.run(
            [sys.executable, *arguments], env=environment, cwd=tmp_path,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        shown = done.stdout
    assert shown == "[4]\n"
