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


def test_commands_name_the_documents_of_the_legacy_api(runner):
    commands = runner.invoke(args=["openapi", "--help"]).output
    assert "list-config-prefixes" not in commands
    options = " ".join(runner.invoke(args=["openapi", "print", "--help"]).output.split())
    assert "--config-prefix VERSION wc_api_v3 or wc_api_v2: the document of this" in options
    printed = runner.invoke(args=["openapi", "print", "--config-prefix", "wc_api_v3"]).output
    assert "/wc-api/v3/coupons" in printed
