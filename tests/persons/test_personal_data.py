"""The description of personal data names every column of every table (people 8)."""

from app.db.session import db
from app.models.personal_data import OTHER, PERSONAL


def test_every_column_is_described_once(app):
    described = {
        (table, column)
        for table, columns in [
            *PERSONAL.items(),
            *((table, names.split()) for table, names in OTHER.items()),
        ]
        for column in columns
    }
    stored = {
        (table.name, column.name) for table in db.metadata.sorted_tables for column in table.c
    }
    assert stored - described == set(), "Describe these columns in app/models/personal_data.py."
    assert described - stored == set()
    both = {
        (table, column)
        for table, column in described
        if column in PERSONAL.get(table, ()) and column in OTHER[table].split()
    }
    assert both == set()
