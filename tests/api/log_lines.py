"""Log lines for the tests of the log."""

import json
import logging
from functools import cached_property

import pytest
from sqlalchemy import insert

from app.api.blueprint import Blueprint
from app.auth.principals import Permission
from app.db.session import now, run_in_transaction
from app.models import User
from app.observability.logs import LIBRARIES
from app.services.api_keys.writes import create_key
from tests.api_client import Client


class Logged:
    """An app whose lines are read back.

    It starts when a test first asks for it, not before: an app prints to the standard output that
    it finds when it starts.
    """

    def __init__(self, make_app, capsys):
        self._make_app = make_app
        self._capsys = capsys
        self.settings = {}

    @cached_property
    def app(self):
        app = self._make_app(**self.settings)
        _add_views_that_fail(app)
        return app

    @cached_property
    def key(self):
        with self.app.app_context():
            return create_key("erp", "administrator", Permission("read_write"), "")

    @property
    def client(self):
        return Client(self.app, self.key)

    @property
    def anonymous(self):
        return Client(self.app)

    def lines(self):
        """The lines that were printed since the last time: failures first, then requests."""
        return [json.loads(line) for line in self.printed().splitlines()]

    def printed(self):
        printed = self._capsys.readouterr()
        return printed.err + printed.out


@pytest.fixture
def logged(app, make_app, capsys):
    loggers = [logging.getLogger(name) for name in (app.name, *LIBRARIES)]
    handlers = [logger.handlers for logger in loggers]
    yield Logged(make_app, capsys)
    for logger, before in zip(loggers, handlers, strict=True):
        logger.handlers = before


def _add_views_that_fail(app):
    blp = Blueprint("broken", __name__, public=True)

    @blp.route("/broken/<word>", methods=["POST"])
    def break_down(word):
        raise RuntimeError("broken on purpose")

    @blp.route("/twice/<word>", methods=["POST"])
    def write_twice(word):
        def work(session):
            row = {"username": word, "username_normalized": word, "created_at": now()}
            session.execute(insert(User), [row])
            session.execute(insert(User), [row])

        run_in_transaction(work)

    api = app.extensions["flask-smorest"]["apis"][""]["ext_obj"]
    api.register_blueprint(blp)
