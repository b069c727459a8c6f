import pytest

from app.auth.principals import Permission
from app.services.api_keys.rights import Rights
from app.services.api_keys.writes import create_key
from tests.plugins.admin.browser_client import Browser


@pytest.fixture
def browser(app, admin):
    """A browser that is signed in with the key of the administrator."""
    return Browser(app, admin.key)


@pytest.fixture
def new_browser(app):
    """Return a function: a browser signed in with a new key."""

    def make(login="ada", role="administrator", permission="read_write", resources=None):
        with app.app_context():
            names = None if resources is None else frozenset(resources)
            rights = Rights(Permission(permission), names)
            key = create_key(login, role, Permission(permission), "", rights=rights)
        browser = Browser(app, key)
        browser.key = key
        return browser

    return make
