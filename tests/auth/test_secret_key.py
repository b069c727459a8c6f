"""The secret key in the instance folder."""

import stat
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from app import create_app
from app.config.loading import SettingsError
from app.config.secret_key import secret_key
from app.config.settings import SettingsSchema
from tests.serving import PATIENCE


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in SettingsSchema._declared_fields:
        monkeypatch.delenv(name, raising=False)


def test_secret_key_is_created_once_for_the_owner_only(tmp_path):
    folder = tmp_path / "not there yet"
    first = create_app({"INSTANCE_PATH": str(folder)}).config["SECRET_KEY"]
    second = create_app({"INSTANCE_PATH": str(folder)}).config["SECRET_KEY"]
    assert (first, second) == ((folder / "secret_key").read_text(), first)
    assert len(first) == 64
    assert stat.S_IMODE((folder / "secret_key").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["secret_key"]


def test_given_secret_key_creates_no_file(tmp_path):
    app = create_app({"INSTANCE_PATH": str(tmp_path), "SECRET_KEY": "sixteen letters!"})
    assert app.config["SECRET_KEY"] == "sixteen letters!"
    assert list(tmp_path.iterdir()) == []


def test_secret_key_of_concurrent_creators_is_one(tmp_path):
    together = Barrier(16)

    def create(_):
        together.wait(PATIENCE)
        return secret_key(tmp_path)

    with ThreadPoolExecutor(16) as pool:
        found = set(pool.map(create, range(16)))
    assert found == {(tmp_path / "secret_key").read_text()}
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_secret_key_of_another_folder_is_another_one(tmp_path):
    assert secret_key(tmp_path / "a") != secret_key(tmp_path / "b")


def test_secret_key_that_cannot_be_created_is_rejected_with_a_remedy(tmp_path):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "instance"
    with pytest.raises(SettingsError) as raised:
        create_app({"INSTANCE_PATH": str(folder)})
    assert str(raised.value) == (
        f"SECRET_KEY: {folder}/secret_key cannot be created or read: Not a directory. Make the "
        "folder writable for the user of the service, or set SECRET_KEY."
    )
