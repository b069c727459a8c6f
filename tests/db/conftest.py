"""Fixtures of the tests of migrations."""

import pytest


@pytest.fixture
def old_app(make_app, fresh_database_url):
    app = make_app(DATABASE_URL=fresh_database_url)
    with app.app_context():
        yield app
