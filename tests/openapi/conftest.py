"""A service for clients. Its start takes longer than most of them."""

import pytest
from sqlalchemy import create_engine

from tests.databases import StoredShop
from tests.serving import running_service


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """A service, and a function that lets its shop be empty."""
    folder = tmp_path_factory.mktemp("service")
    limits = {"SHOP_PAGE_SIZE": "2", "SHOP_BULK_LIMIT": "3", "SHOP_MAX_BODY_BYTES": "20000"}
    with running_service(folder, **limits) as service:
        engine = create_engine(f"sqlite:///{folder}/shop.db")
        with engine.begin() as connection:
            stored = StoredShop(connection)

        def empty():
            with engine.begin() as connection:
                connection.exec_driver_sql("DELETE FROM sqlite_sequence")  # IDs begin with 1 again
                stored.insert(connection)

        yield service, empty
        engine.dispose()


@pytest.fixture
def shop(service):
    """The environment of a client: where the service is, whose shop is empty, and a key."""
    service, empty = service
    empty()
    return {
        "SHOP_URL": service.url,
        "SHOP_CONSUMER_KEY": service.consumer_key,
        "SHOP_CONSUMER_SECRET": service.consumer_secret,
    }
