"""Services for clients of both dialects."""

import pytest
import trustme

from tests.serving import running_service


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A file with a private key, its certificate and the authority that signed it."""
    path = tmp_path_factory.mktemp("tls") / "127.0.0.1.pem"
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(path)
    authority.cert_pem.write_to_path(path, append=True)
    return path


@pytest.fixture(scope="module")
def shops(tmp_path_factory, certificate):
    """A running service for each way; over TLS it is the same one."""
    settings = {"SHOP_AUTH_FAILURES_PER_MINUTE": "0"}
    clear, tls = tmp_path_factory.mktemp("clear"), tmp_path_factory.mktemp("tls")
    with (
        running_service(clear, **settings) as over_http,
        running_service(tls, certificate, **settings) as over_tls,
    ):
        yield {"signature": over_http, "basic": over_tls, "query": over_tls}
