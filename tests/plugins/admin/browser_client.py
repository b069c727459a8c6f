"""A browser for tests of the pages: cookies, forms as they are in the page, and same-origin requests."""

import re
from html.parser import HTMLParser

from app.services.api_keys.links import create_link

ORIGIN = {"Sec-Fetch-Site": "same-origin"}


class _Forms(HTMLParser):
    """The forms of a page: action and the values that a browser would send."""

    def __init__(self):
        super().__init__()
        self.forms, self._select, self._textarea = [], None, None

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "form":
            self.forms.append((found.get("action", ""), found.get("method", "get"), []))
        if not self.forms or "name" not in found:
            if tag == "option" and self._select and "selected" in found:
                self.forms[-1][2].append((self._select, found.get("value", "")))
            return
        values = self.forms[-1][2]
        if tag == "input":
            kind = found.get("type", "text")
            if kind not in {"checkbox", "radio"} or "checked" in found:
                values.append((found["name"], found.get("value", "on")))
        elif tag == "select":
            self._select = found["name"]
        elif tag == "textarea":
            self._textarea = found["name"]
            values.append((found["name"], ""))

    def handle_data(self, data):
        if self._textarea:
            values = self.forms[-1][2]
            values[-1] = (self._textarea, values[-1][1] + data)

    def handle_endtag(self, tag):
        if tag == "textarea":
            self._textarea = None
        if tag == "select":
            self._select = None


class Page:
    """A response as a page."""

    def __init__(self, response):
        self.response = response
        self.status = response.status_code
        self.html = response.get_data(as_text=True)
        self.text = " ".join(re.sub(r"<[^>]*>", " ", self.html).split())
        self.location = response.headers.get("Location", "")
        self.headers = response.headers
        # A browser drops a form within a form, and its button then belongs to the outer one.
        tags = re.findall(r"<(/?form)\b", self.html)
        assert tags == ["form", "/form"] * (len(tags) // 2), "a form within a form"

    def forms(self):
        """The forms of the page: action, method and the values that a browser would send."""
        parser = _Forms()
        parser.feed(self.html)
        return parser.forms

    def form(self, name):
        """The values of the form that contains an input with this name."""
        return next(
            dict(values) for _, method, values in self.forms()
            if method == "post" and any(key == name for key, _ in values)
        )  # fmt: skip


class Browser:
    """A signed-in browser. Without a key, nobody is signed in."""

    def __init__(self, app, key=None, user_agent="Werkzeug"):
        self.app = app
        self.http = app.test_client()
        self.http.environ_base["HTTP_USER_AGENT"] = user_agent
        if key is not None:
            with app.app_context():
                token = create_link(key.key_id)
            assert self.post("/sign-in", {"token": token}).status == 303

    def get(self, path, **kwargs):
        return Page(self.http.get(f"/admin{path}", **kwargs))

    def post(self, path, data=None, headers=ORIGIN, **kwargs):
        return Page(self.http.post(f"/admin{path}", data=data or {}, headers=headers, **kwargs))

    def submit(self, path, name, /, **over):
        """Open a page, change fields of the form with an input, and send it."""
        values = self.get(path).form(name) | over
        return self.post(path, {key: value for key, value in values.items() if value is not None})
