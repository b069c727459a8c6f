"""openapi.json, from which clients are generated, equals the document of the service."""

from pathlib import Path

import pytest

from app import create_app
from tests.databases import SECRET, close

COMMITTED = Path(__file__).parents[2] / "openapi.json"


@pytest.fixture
def runner(tmp_path):
    """Run the commands of an app with the default settings."""
    app = create_app(
        {
            "DATABASE_URL": f"sqlite:///{tmp_path}/shop.db",
            "SECRET_KEY": SECRET,
            "INSTANCE_PATH": str(tmp_path),
        }
    )
    yield app.test_cli_runner()
    close(app)


def test_openapi_file_is_current(runner, tmp_path):
    written = tmp_path / "openapi.json"
    result = runner.invoke(args=["openapi", "write", str(written)])
    assert result.exit_code == 0, result.output
    # A comparison of its own: pytest would show where 9,000 lines differ, for minutes.
    is_current = written.read_text() == COMMITTED.read_text()
    assert is_current, "openapi.json is stale: run `make openapi`"
