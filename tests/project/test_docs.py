"""Compare the tables, commands and examples of the documentation with the service."""

import json
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest

from app import plugin_api
from app.auth import principals
from app.catalog import EVENT_TYPES
from app.errors.codes import ERRORS
from app.import_export.export_kinds import KINDS
from app.services.api_keys.writes import create_key
from tests.api_client import Client
from tests.commands import succeed
from tools import generated_pages

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
PROGRAMS = ["Makefile", "Dockerfile", "deploy/shop-api.service", "deploy/shop-api-worker.service"]


def read(name):
    return (ROOT / name).read_text()


def tables(text):
    """Return the header and the rows of each table of a document, as lists of cells."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n?)+", text, re.MULTILINE):
        header, _, *rows = [
            [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in block.strip().splitlines()
        ]
        found.append((header, rows))
    return found


def table(name, *header):
    (rows,) = [rows for found, rows in tables(read(name)) if found == list(header)]
    return rows


# --- tables ---


def test_generated_pages_are_current(session_app):
    pages = generated_pages.pages(session_app)
    stale = [path.name for path, text in pages.items() if path.read_text() != text]
    assert stale == [], "run `make openapi`"


def test_monitoring_lists_every_metric(make_app):
    app = make_app(SHOP_METRICS=True)
    page = app.test_client().get("/metrics").get_data(as_text=True)
    named = dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.MULTILINE))
    rows = table("docs/monitoring.md", "Metric", "Labels", "")
    assert sorted(row[0].strip("`") for row in rows) == sorted(named)


def test_errors_lists_every_code_with_its_status_and_advice():
    rows = [
        row
        for header, found in tables(read("docs/errors.md"))
        if header == ["Code", "Status", "What to do"]
        for row in found
    ]
    assert {code.strip("`"): int(status) for code, status, _ in rows} == {
        code: status for code, (status, _) in ERRORS.items()
    }
    assert len(rows) == len(ERRORS)
    assert [code for code, _, advice in rows if not re.fullmatch(r"[A-Z`].{15,}\.", advice)] == []
    advice_of = {code.strip("`"): advice for code, _, advice in rows}
    unnamed = {
        code: missing
        for code, needed in principals.CAPABILITIES.items()
        if (missing := [each.value for each in needed if f"`{each}`" not in advice_of[code]])
    }
    assert unnamed == {}


def test_retries_lists_every_operation_with_an_idempotency_key(session_app):
    document = session_app.test_client().get("/openapi.json").get_json()
    rows = table("docs/retries.md", "Records", "Operations with an `Idempotency-Key`")
    named = [each for _, operations in rows for each in re.findall("`([^`]+)`", operations)]
    assert sorted(named) == sorted(
        f"{method.upper()} {path}"
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
        and "Idempotency-Key" in [each.get("name") for each in operation.get("parameters", ())]
    )


def test_api_names_every_path_that_is_always_strict(session_app):
    (sentence,) = re.findall(
        r"Some requests are always strict.*?`Prefer:", read("docs/api.md"), re.S
    )
    names = re.findall(r"`(/[^`]+)`", sentence)
    found = {True: set(), False: set()}
    for rule in session_app.url_map.iter_rules():
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
        of_path = [
            each for each in names if path == each or f"{path}/".startswith(each.replace("…", "/"))
        ]
        blueprint = session_app.blueprints.get(rule.endpoint.rpartition(".")[0])
        is_strict = getattr(blueprint, "always_strict", False)
        assert of_path or not is_strict, f"docs/api.md does not name {path}, which is always strict"
        found[is_strict].update(of_path)
    assert found == {True: {*names}, False: set()}


def test_events_lists_every_type():
    rows = table("docs/events.md", "Type", "Written when")
    named = [each for types, _ in rows for each in re.findall("`([^`]+)`", types)]
    assert sorted(named) == sorted(EVENT_TYPES)


def test_export_names_the_kinds_and_the_values_that_only_a_restore_needs():
    rows = table("docs/export.md", "`kind`", "After the fields of the API")
    named = {kind.strip("`"): {*re.findall("`([^`]+)`", values)} for kind, values in rows}
    assert sorted(named) == sorted(kind.singular for kind in KINDS.values())
    for kind in KINDS.values():
        # The text below the table describes the metadata of all kinds.
        assert {*kind.stored, *kind.related_names} - {"metadata"} <= named[kind.singular], kind.name


def test_plugins_names_everything_that_a_plugin_can_import():
    code = re.findall(r"```.*?```|`[^`]+`", read("docs/plugins.md"), re.DOTALL)
    assert sorted({*plugin_api.__all__} - {*re.findall(r"\w+", " ".join(code))}) == []


def test_lists_section_names_every_parameter_and_sort_key(session_app):
    document = session_app.test_client().get("/openapi.json").get_json()
    text = read("docs/api.md").partition("\n## Selecting fields\n")[2].partition("\n## Bulk\n")[0]
    inline = re.findall(r"`([^`]+)`", re.sub("```.*?```", "", text, flags=re.DOTALL))
    named = {name for code in inline for name in re.findall("[a-z_]+", code)}
    for path in ("/coupons", "/customers", "/orders"):
        for parameter in document["paths"][path]["get"]["parameters"]:
            if parameter.get("in") == "query" and parameter["name"] != "orderby_meta_key":
                assert {parameter["name"], *parameter["schema"].get("enum", ())} <= named, path


def test_permissions_lists_the_capabilities_of_every_role():
    (header, rows) = next(
        found for found in tables(read("docs/permissions.md")) if found[0][0] == "Capability"
    )
    roles = [name.strip("`") for name in header[1:]]
    assert roles == list(principals.ROLES)
    assert {
        role: {row[0].strip("`") for row in rows if row[position] == "yes"}
        for position, role in enumerate(roles, 1)
    } == {role: {str(capability) for capability in held} for role, held in principals.ROLES.items()}


# --- the files and switches of the pages for contributors ---


PAGES_FOR_CONTRIBUTORS = (
    "CONTRIBUTING.md",
    "docs/design.md",
    "docs/how-a-request-travels.md",
    "docs/add-a-field.md",
    "docs/add-a-resource.md",
    "docs/migrations.md",
)
NESTED = "app/", "app/*/", "app/services/*/", "app/plugins/*/", "app/plugins/woocommerce/*/"
FOLDERS = [ROOT, *(folder for each in NESTED for folder in ROOT.glob(each))]
INVENTED = {"internal_note"}
"""Names of an example."""


def source_files(path):
    """Return the files of a path as pages name it: from any folder that needs no explanation."""
    return [found for each in FOLDERS for found in each.glob(path.replace("…", "*").rstrip("/"))]


@pytest.fixture(scope="module")
def names_of_code():
    """Every name in the source, as words."""
    folders = [ROOT / name for name in ("app", "server", "migrations", "tests", "tools", "qa")]
    files = [found for each in folders for found in each.rglob("*.py")]
    files += [ROOT / name for name in ("Makefile", "gunicorn.conf.py", "pyproject.toml")]
    text = " ".join([*(str(each) for each in files), *(each.read_text() for each in files)])
    return set(re.findall(r"\w+", text)) | INVENTED


@pytest.mark.parametrize("name", PAGES_FOR_CONTRIBUTORS)
def test_files_and_names_of_the_code_exist(name, names_of_code):
    text = " ".join(re.sub(r"```.*?```", "", read(name), flags=re.DOTALL).split())
    named = set(re.findall(r"`([\w./…-]+/[\w./…-]*|[\w…-]+\.(?:py|json|md|toml))`", text))
    paths = [each for each in named if not each.startswith("/")]
    assert len(paths) > 5
    assert [path for path in paths if not source_files(path)] == []
    words = {
        word
        for code in re.findall(r"`([^`]+)`", text)
        for word in re.findall(r"[a-zA-Z_]\w+", code)
    }
    of_code = {word for word in words if re.search(r"[a-z]_[a-z]|[a-z][A-Z]", word)}
    assert sorted(of_code - names_of_code) == []
    # `_matching` in `services/…/queries.py`, `Worker` (`server/gunicorn_worker.py`)
    assert [
        (word, path)
        for word, path in re.findall(r"`(\w+)` (?:in |\()`([\w/.…]+\.py)`", text)
        if not any(re.search(rf"\b{word}\b", each.read_text()) for each in source_files(path))
    ] == []


def test_contributing_lists_every_ambient_switch():
    """They are found in the source, so that a new one is documented."""
    code = "\n".join(path.read_text() for path in (ROOT / "app").rglob("*.py"))
    keys = re.findall(r"\b(session|connection)\.info\[(\w+)\] =", code)
    values = dict(re.findall(r'^(\w+) = "(\w[\w.]*)"$', code, re.MULTILINE))
    expected = {
        *(f"context variable `{name}`" for name in re.findall(r'ContextVar\("(\w+)"', code)),
        *(f"`g.{name}`" for name in re.findall(r"\bg\.(\w+) = ", code)),
        *(f'`{owner.title()}.info["{values[key]}"]`' for owner, key in keys),
        *(f"WSGI `{values[key]}`" for key in re.findall(r"\benviron\[([A-Z_]+)\] =", code)),
    }
    assert {row[0] for row in table("CONTRIBUTING.md", "Switch", "Set by", "Effect")} == expected


# --- links and commands ---


def anchors(text):
    """Return the anchors of a document's headings, as GitHub generates them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", NAMES)
def test_every_relative_link_exists(name):
    for target in re.findall(r"\]\(([^)\s]+)\)", read(name)):
        if urlsplit(target).scheme:
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        if path == "fields.md":  # built with the site
            continue
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text()), target


def commands(name):
    """Return the inline code of a document and the lines of its console blocks."""
    text = read(name)
    blocks = re.findall(r"```(?:console|bash|sh)\n(.*?)```", text, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    lines = [line.strip().removeprefix("$ ") for line in lines]
    inline = re.findall(r"(?<!`)`([^`]+)`(?!`)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [*lines, *(" ".join(code.split()) for code in inline)]


@pytest.mark.parametrize("name", NAMES)
def test_every_make_command_is_in_the_makefile(name):
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    named = {found[1] for line in commands(name) if (found := re.match(r"make ([a-z-]+)", line))}
    assert sorted(named - targets) == []


def shop_api_commands(name):
    """Yield the arguments of each `shop-api` in a document or another file."""
    text = read(name).replace("$(SHOP_API)", "shop-api")
    lines = commands(name) if name.endswith(".md") else text.splitlines()
    for line in lines:
        # A folder, an image and a unit have the same name.
        if not re.search(r"useradd|systemctl|make -C|git -C|docker (?:build|run)", line):
            found = re.findall(r"(?:^|.*[ \t@=\"])(?:\S*/)?shop-api ([a-z][^|&\n]*)", line)
            yield from (shlex.split(arguments, comments=True) for arguments in found)


@pytest.mark.parametrize("name", [*NAMES, *PROGRAMS])
def test_every_command_exists_with_its_options(session_app, name):
    for arguments in shop_api_commands(name):
        command, words = session_app.cli, iter(arguments)
        for word in words:
            if word.startswith(("-", "[")) or not isinstance(command, click.Group):
                break
            command = command.get_command(click.Context(command), word)
            assert command, arguments
        known = {name for option in command.params for name in option.opts} | {"--help"}
        named = {word.strip("[]").partition("=")[0] for word in arguments}
        assert sorted({word for word in named if word.startswith("--")} - known) == [], arguments


@pytest.mark.parametrize("name", [*NAMES, *PROGRAMS])
def test_commands_are_written_in_one_way(name):
    assert re.findall(r"flask (?:--app|run)\b", read(name)) == []
    # In a checkout, the program is not in PATH.
    for block in re.findall(r"```(?:console|bash|sh)\n(.*?)```", read(name), re.DOTALL):
        assert re.findall(r"^ *(?:\$ )?(?:[A-Z_]+=\S+ )*shop-api .*", block, re.MULTILINE) == []
    # A prompt distinguishes commands from their output, and the site copies them without it.
    blocks = re.findall(r"^( *)```(\w*)\n(.*?)^\1```$", read(name), re.DOTALL | re.MULTILINE)
    for block in (text for _, language, text in blocks if language in {"", "console"}):
        assert re.findall(r"^ *(?:curl|make|mysqldump|\S*shop-api) .*", block, re.MULTILINE) == []
        # Without the secret key, which `shop-api backup` includes, no API key works.
        assert re.findall(r"\bpg_(?:dump|restore) .*", block) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name != "CHANGELOG.md"])
def test_sentences_name_the_program_with_its_command(session_app, name):
    groups = {
        group: command.commands if isinstance(command, click.Group) else {}
        for group, command in session_app.cli.commands.items()
    }
    words = [code.split() for code in commands(name) if not code.startswith("-")]
    short = [
        " ".join(each)
        for each in words
        if each and each[0] in groups and each[1:2] and each[1] in groups[each[0]]
    ]
    assert [*short, *(each[0] for each in words if each in (["doctor"], ["serve"]))] == []


@pytest.mark.parametrize("name", NAMES)
def test_curl_gets_urls_with_brackets_literally(name):
    """Without -g, curl takes [ as the start of a range."""
    for block in re.findall(r"```\w*\n(.*?)```", read(name), re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            command = re.sub(r"^\s*(\$ )?", "", line).partition(" -d ")[0]
            if command.startswith("curl ") and re.search(r"\?\S*(?<!\\)\[", command):
                assert re.search(r" -\w*g\b", line), line


def test_readme_links_every_document():
    linked = set(re.findall(r"\]\(([\w/.-]+\.md)\)", read("README.md")))
    assert sorted({*NAMES} - linked) == ["README.md"]


# --- the examples of the README and of the quick start ---


def curls(name, section=""):
    """Yield the curl and `make demo` commands of a document, split into words, with their comments.

    Those of one section, if it is given.
    """
    text = read(name)
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```(?:console|bash|sh)\n(.*?)```", text, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    for line in lines:
        words = shlex.split(line.strip().removeprefix("$ "), comments=True)
        if words[:1] == ["curl"] or words == ["make", "demo"]:
            yield words, line.partition("   # ")[2]


def request_of(arguments):
    """Return the method, URL, body and credentials of a curl command."""
    method, body, user, address = None, None, None, None
    words = iter(arguments)
    for word in words:
        match word:
            case "-u":
                user = next(words)
            case "-i" | "-g":
                pass
            case "-X":
                method = next(words)
            case "-d":
                body = next(words)
            case _:
                assert not word.startswith("-"), f"curl {word} is not known here"
                assert address is None
                address = word if "://" in word else f"http://{word}"
    return method or ("POST" if body else "GET"), urlsplit(address), body, user


@pytest.fixture
def run_examples(make_app, migrated_database_url):
    """Return a function that runs the commands of a document in order, on a new database."""
    app = make_app(DATABASE_URL=migrated_database_url)
    with app.app_context():
        key = create_key("admin", "administrator", principals.Permission.READ_WRITE, "")
    client = Client(app, key)
    bodies = []

    def demo():
        arguments = ["demo", "--customers", "40", "--coupons", "20", "--orders", "60"]
        succeed(app, *arguments)

    def run(name, *, section="", demo_first=False):
        first_id = campaign = None
        if demo_first:
            demo()
        for (command, *arguments), remark in curls(name, section):
            if command == "make":
                if not demo_first:
                    demo()
                continue
            method, address, body, user = request_of(
                # as the shell does
                word.replace("$((ID + 1))", str((first_id or 0) + 1))
                .replace("$ID", str(first_id))
                .replace("$CAMPAIGN", str(campaign))
                for word in arguments
            )
            assert (address.netloc, user) == ("localhost:8000", "$KEY")
            response = client.request(
                method,
                f"{address.path}?{address.query}",
                data=body,
                # curl -d always sends this type
                content_type="application/x-www-form-urlencoded" if body else None,
            )
            assert (response.status_code in {200, 201}) == (remark != "rejected"), arguments
            assert ("error" in json.dumps(response.get_json())) == bool(remark), arguments
            shown = response.get_json() or {}  # a CSV file is no JSON
            for kind in ("coupon", "customer", "redemption", "batch"):
                if first_id is None and kind in shown:
                    first_id = shown[kind]["id"]
            campaign = shown.get("campaign", {}).get("id", campaign)
            bodies.append(response.get_json())
            yield method, address.path, remark

    run.bodies = bodies
    return run


def test_readme_examples_work_in_their_order(run_examples):
    seen = list(run_examples("README.md"))
    # The README promises an example of each of these.
    assert {method for method, _, _ in seen} == {"GET", "POST", "PUT", "DELETE"}
    assert ("POST", "/coupons/bulk", "") in seen


@pytest.mark.slow
def test_readme_examples_work_after_the_demo_and_change_none_of_its_coupons(run_examples):
    seen = list(run_examples("README.md", demo_first=True))
    changed = {path for method, path, _ in seen if method in {"PUT", "DELETE"}}
    assert changed == {"/coupons/21", "/coupons/22"}  # the demo has 20


def test_quick_start_works_and_fails_where_it_says_so(run_examples):
    seen = [remark for _, _, remark in run_examples("docs/quickstart.md")]
    assert seen == ["", "", "rejected", "rejected", "one item fails", "", "", "", ""]
    assert run_examples.bodies[-1] == {"coupon": {"code": "welcome", "usage_count": 1}}


def test_metadata_examples_store_a_number_find_the_record_and_remove_it(run_examples):
    seen = list(run_examples("docs/api.md", section="Metadata"))
    assert [method for method, _, _ in seen] == ["POST", "GET", "PUT"]
    stored, found, removed = run_examples.bodies
    assert stored["customer"]["metadata"] == {"erp_id": "4711"}
    assert [each["id"] for each in found["customers"]] == [stored["customer"]["id"]]
    assert removed["customer"]["metadata"] == {}


def test_coupon_examples_take_a_use_once_per_customer_and_release_it(run_examples):
    assert list(run_examples("docs/coupons.md", section="Create a coupon"))
    seen = [
        remark for *_, remark in run_examples("docs/coupons.md", section="A checkout in five calls")
    ]
    assert seen == ["", "", "", "rejected", "", ""]
    _, evaluated, reserved, confirmed, rejected, released, listed = run_examples.bodies
    assert evaluated["evaluation"]["discount"] == "2.79"
    assert [each["redemption"]["status"] for each in (reserved, confirmed, released)] == [
        "reserved", "confirmed", "released",
    ]  # fmt: skip
    assert rejected["errors"][0]["reasons"][0]["code"] == "usage_limit_per_user"
    assert [each["status"] for each in listed["redemptions"]] == ["released"]


@pytest.mark.slow
def test_batch_examples_generate_codes_and_withdraw_them(run_examples):
    assert (
        len(
            list(
                run_examples(
                    "docs/coupons.md", section="Bulk codes: generate a code for each recipient"
                )
            )
        )
        == 4
    )
    generated, listed, _, withdrawn = run_examples.bodies
    assert generated["batch"]["count"] == 1000
    assert listed["coupons"][0]["code"].startswith("spring-")
    assert withdrawn == {"trashed": 1000}


@pytest.mark.slow
def test_order_examples_lead_from_the_first_order_to_the_trash(run_examples):
    seen = list(run_examples("docs/orders.md"))
    assert [remark for *_, remark in seen if remark] == ["rejected"]
    assert ("POST", "/orders/2/refunds", "") in seen


def test_readme_names_the_settings_of_a_first_run():
    assert "export KEY=ck_…:cs_…" in read("README.md")
