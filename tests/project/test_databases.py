"""What the tests need to start a PostgreSQL server."""

import pytest

from qa.cluster import programs


@pytest.fixture
def no_programs(monkeypatch, tmp_path):
    """A machine without programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "_SYSTEM_FOLDERS", str(tmp_path))
    programs.find.cache_clear()
    yield
    programs.find.cache_clear()


@pytest.mark.usefixtures("no_programs")
def test_user_of_the_server_without_useradd():
    reason = "useradd, which creates the user nobody-else, is not installed (Debian package passwd)"
    assert programs.why_not_created("nobody-else") == reason
    assert programs.why_not_created("root") == ""
