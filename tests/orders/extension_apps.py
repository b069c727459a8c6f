"""Apps with the views and the plugin of the tests of order extensions."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.api_client import Client


@pytest.fixture(scope="session")
def installed_plugin(tmp_path_factory):
    """Install the plugin's distribution into a separate folder, as pip does."""
    target = tmp_path_factory.mktemp("plugins")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*command, str(Path(__file__).parents[1] / "plugins" / "loyalty")], check=True)
    return str(target)


@pytest.fixture
def plugged(make_app, installed_plugin, monkeypatch, admin):
    """A client of an app in which the plugin is installed, beside the others."""
    monkeypatch.syspath_prepend(installed_plugin)
    return Client(make_app(), admin.key)


@pytest.fixture
def by_hand(make_app, admin):
    """Return a function: a client of an app with a plain view that returns ``make()``."""

    def build(make):
        own = make_app()
        own.add_url_rule("/by-hand", view_func=make, methods=["GET", "POST"])
        return Client(own, admin.key)

    return build
