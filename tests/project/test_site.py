"""The documentation site: `make docs`, and how a service shows it."""

import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from functools import partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from markdown_it import MarkdownIt
from playwright import sync_api

from app.blueprints import guides
from app.errors.codes import ERRORS

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).parents[2]
SOURCES = [
    "mkdocs.yml", "docs", "openapi.json", "tools/site_pages.py", "tools/field_page.py",
    "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "clients/python/README.md", "clients/typescript/README.md",
]  # fmt: skip
PREFIX = "/shop/docs/guides/"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
chromium = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, BROWSERS)), None)


def build(folder):
    """Build the site of a copy of the repository as `make docs` does, without a proxy or network."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean"]
    nowhere = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, timeout=600,
        env=os.environ | nowhere | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip


def copy_sources(folder):
    for name in SOURCES:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = copy_sources(tmp_path_factory.mktemp("site"))
    result = build(folder)
    assert result.returncode == 0, result.stderr
    return folder / "app" / "site"


@pytest.fixture
def get(make_app, built, monkeypatch):
    monkeypatch.setattr(guides, "SITE", built)
    client = make_app(SHOP_URL_PREFIX="/shop").test_client()
    return partial(client.get, buffered=True)  # closes the files


@pytest.mark.slow
def test_every_page_is_in_the_navigation(built):
    page = (built / "index.html").read_text()
    named = set(re.findall(r'href="([a-z0-9-]+\.html)" class="md-nav__link', page)) - {"index.html"}
    pages = {path.name for path in built.glob("*.html")} - {"404.html", "index.html"}
    others = {
        "changelog",
        "client-python",
        "client-typescript",
        "contributing",
        "fields",
        "security",
    }
    guides = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages == {f"{name}.html" for name in guides | others}
    assert pages == named


@pytest.mark.slow
def test_links_of_pages_lead_to_the_site_or_to_web_pages(built):
    for path in built.glob("*.html"):
        page = path.read_text()
        for target in re.findall(r'<a [^>]*?href="([^"]*)"', page):
            name, _, anchor = target.partition("#")
            if path.name == "404.html" or re.match(r"https?:", name):
                continue
            linked = built / name if name not in {"", "."} else path
            assert linked.is_file(), (path.name, target)
            assert not anchor or f'id="{anchor}"' in linked.read_text(), (path.name, target)


@pytest.mark.slow
def test_the_link_of_an_error_leads_to_its_code(get, built):
    page = (built / "errors.html").read_text()
    missing = [code for code in ERRORS if f'<span id="{code}"></span>' not in page]
    assert missing == []
    response = get("/shop/coupons", headers={"Accept": "application/json"})
    link = '</shop/docs/guides/errors.md#shop_api_authentication_error>; rel="help"'
    assert (response.status_code, response.headers["Link"]) == (401, link)
    target = get(link[1:].partition("#")[0]).headers["Location"]
    assert target.rpartition("/")[2] == "errors.html"
    assert get("/shop/wc-api/v3/coupons").headers["Link"] == link
    others = get("/shop/wp-json/wc/v3/coupons").headers.getlist("Link")
    assert [other.partition("; ")[2] for other in others] == ['rel="https://api.w.org/"']


@pytest.mark.slow
def test_pages_load_nothing_from_other_hosts(built):
    for path in built.glob("*.html"):
        tags = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", path.read_text())
        loaded = [tag for tag in tags if re.search(r'(?:src|href)="(?:https?:)?//', tag)]
        assert loaded == [], path.name
    for path in built.rglob("*.css"):
        assert re.findall(r"""(?:url\(|@import )["']?(?:https?:)?//[^)]*""", path.read_text()) == []


@pytest.mark.slow
def test_lists_and_code_are_the_same_as_on_code_hosting_sites(built):
    """MkDocs and CommonMark differ in the indentation of lists."""

    def count(html):
        return {
            tag: len(re.findall(f"<{tag}[ >]", html)) for tag in ("li", "ol", "ul", "pre", "table")
        }

    for source in (ROOT / "docs").glob("*.md"):
        page = (built / f"{source.stem}.html").read_text()
        article = re.search(r"<article.*?</article>", page, re.DOTALL)[0]
        plain = MarkdownIt("commonmark").enable("table").render(source.read_text())
        assert count(article) == count(plain), source.name


def test_image_has_the_versions_of_the_development_environment():
    locked, used = (
        set(re.findall(r"^([\w.-]+==\S+)", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("requirements-docs.txt", "requirements-dev.txt")
    )
    assert {"mkdocs", "mkdocs-material"} <= {line.partition("==")[0] for line in locked}
    assert locked <= used


@pytest.mark.slow
def test_links_do_not_have_the_name_of_a_file_as_their_text(built):
    for path in built.glob("*.html"):
        assert re.findall(r">([\w-]+\.md)</a>", path.read_text()) == [], path.name


@pytest.mark.slow
def test_search_index_contains_the_sections(built):
    index = (built / "search" / "search_index.json").read_text()
    assert '"location":"webhooks.html#' in index


@pytest.mark.slow
def test_instructions_come_before_measurements_in_results_of_the_search(built):
    found = json.loads((built / "search" / "search_index.json").read_text())["docs"]
    behind = {each["location"].partition("#")[0] for each in found if each.get("boost", 1) < 1}
    assert {"performance.html", "changelog.html", "design.html"} <= behind
    assert behind.isdisjoint({"index.html", "webhooks.html", "cluster.html", "commands.html"})


FIRST_RESULTS = {
    "haproxy": "cluster",
    "generate codes": "coupons",
    "refund": "recipes",
    "webhook signature": "webhooks",
    "backup": "backup",
    "rotate a key": "commands",
    "how do I redeem a coupon": "quickstart",
    "typescript": "clients",
    "usage_limit_per_user": "coupons",
}
AMONG_THREE = {
    "personal data": "privacy",
    "start date": "coupons",
    "forgot password": "admin",
    "bulk codes": "coupons",
    "dark mode": "admin",
    "429": "retries",
    "idempotency": "retries",
    "GDPR": "privacy",
    "undo": "events",
    "merge": "customers",
}


@pytest.mark.slow
@pytest.mark.skipif(not chromium, reason="no Chromium installed: the search is not tried")
def test_search_works_without_a_server_and_finds_instructions_first(built):
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        failures, found = [], {}
        page = browser.new_page()
        page.on("console", lambda message: failures.append(message.text))
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.goto((built / "index.html").as_uri() + f"?q={quote(next(iter(FIRST_RESULTS)))}")
        # The first link of a result is its page. Others are its sections.
        links = page.locator(".md-search-result__item > .md-search-result__link:first-child")
        links.first.wait_for(state="attached")
        for text in FIRST_RESULTS | AMONG_THREE:
            for typed, state in (("", "detached"), (text, "attached")):
                page.fill(".md-search__input", typed)
                page.dispatch_event(".md-search__input", "keyup")
                links.first.wait_for(state=state)
            paths = [urlsplit(link.get_attribute("href")).path for link in links.all()[:3]]
            found[text] = [Path(path).stem for path in paths]
        browser.close()
    assert failures == []
    assert {text: found[text][0] for text in FIRST_RESULTS} == FIRST_RESULTS
    assert {text for text, name in AMONG_THREE.items() if name not in found[text]} == set()


@pytest.mark.slow
def test_wrong_links_fail_the_build(tmp_path):
    page = copy_sources(tmp_path) / "docs" / "quickstart.md"
    links = ("missing.md", "webhooks.md#missing", "#missing")
    page.write_text(page.read_text() + "".join(f"\n[A link]({link})\n" for link in links))
    result = build(tmp_path)
    assert result.returncode == 1
    for link in links:
        warning = f"WARNING -  Doc file 'quickstart.md' contains a link '{link}', but"
        assert warning in result.stderr, result.stderr


THEMED = {
    "--md-default-fg-color": "--text", "--md-default-fg-color--light": "--muted",
    "--md-default-fg-color--lightest": "--line", "--md-default-bg-color": "--surface",
    "--md-primary-fg-color": "--raised", "--md-typeset-a-color": "--accent",
    "--md-accent-fg-color": "--accent",
}  # fmt: skip
"""Colours of the site by the names of its theme, and those of the admin pages."""


def colours_of(name):
    """Return the colours of a style sheet by their names: those of light, and those of dark."""
    text = (ROOT / name).read_text()
    dark = re.search(r"color-scheme: dark|=slate\]", text).start()
    found = [
        re.findall(r"(--[\w-]+): (oklch\([^)]+\))", part) for part in (text[:dark], text[dark:])
    ]
    return [{THEMED.get(key, key): value for key, value in each} for each in found]


@pytest.mark.parametrize("name", ["docs/site.css", "app/templates/error.html"])
def test_colours_are_those_of_the_admin_pages(name):
    for found, admin in zip(
        colours_of(name), colours_of("app/plugins/admin/static/admin.css"), strict=True
    ):
        shared = found.keys() & admin.keys()
        assert shared >= {"--text", "--muted", "--line", "--surface", "--accent"}
        assert {key: found[key] for key in shared} == {key: admin[key] for key in shared}


def test_plain_guides_have_colours_of_the_admin_pages():
    light, dark = colours_of("app/plugins/admin/static/admin.css")
    pairs = set(re.findall(r"light-dark\((oklch\(.*?\)), (oklch\(.*?\))\)", guides._PAGE))
    assert pairs == {(light[key], dark[key]) for key in ("--text", "--surface", "--accent")}


@pytest.mark.slow
def test_service_shows_the_site(get, built):
    for url, name in [("", "index.html"), ("coupons.html", "coupons.html")]:
        response = get(PREFIX + url)
        assert (response.status_code, response.mimetype) == (200, "text/html")
        assert response.data == (built / name).read_bytes()
        policy = response.headers["Content-Security-Policy"]
        inline = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
        assert len(inline) > 1
        for script in inline:
            assert f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.slow
def test_service_shows_the_files_of_the_site(get, built):
    (script,) = (built / "assets" / "javascripts").glob("bundle.*.js")
    response = get(f"{PREFIX}assets/javascripts/{script.name}")
    assert (response.status_code, response.mimetype) == (200, "text/javascript")
    repeated = get(
        f"{PREFIX}assets/javascripts/{script.name}",
        headers={"If-None-Match": response.headers["ETag"]},
    )
    assert repeated.status_code == 304
    assert get(f"{PREFIX}search/search_index.json").mimetype == "application/json"
    assert get(f"{PREFIX}swagger-ui.png").mimetype == "image/png"


@pytest.mark.slow
def test_address_of_a_guide_leads_to_its_page(get):
    response = get(f"{PREFIX}orders.md")
    assert (response.status_code, response.headers["Location"]) == (302, "orders.html")
    response = get("/shop/docs/guides")  # links of the start page are relative
    assert (response.status_code, response.headers["Location"]) == (302, "guides/")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["other.html", "other.md", "../guides.py", "%2e%2e/files.py", "a/"]
)
def test_unknown_files_are_not_found(get, name):
    assert get(PREFIX + name).status_code == 404


def test_service_shows_a_site_with_the_policy_of_its_scripts(make_app, monkeypatch, tmp_path):
    files = {"index.html": "<p>Guides</p><script>start()</script>", "orders.html": "<p>Orders</p>"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(guides, "SITE", tmp_path)
    get = partial(make_app(SHOP_URL_PREFIX="/shop").test_client().get, buffered=True)
    start, orders = get(PREFIX), get(f"{PREFIX}orders.html")
    assert [start.text, orders.text] == [*files.values()]
    digest = b64encode(sha256(b"start()").digest()).decode()
    assert f"'sha256-{digest}'" in start.headers["Content-Security-Policy"]
    assert get(f"{PREFIX}orders.md").headers["Location"] == "orders.html"
    assert get(f"{PREFIX}../guides.py").status_code == 404
