"""Requests for the tests of customer input."""

PASSWORD = "Pa55-wôrd <never> shown"


def create(client, **fields):
    return client.post("/customers", {"customer": {"email": "new@example.com"} | fields})


def edit(client, customer_id, **changes):
    return client.put(f"/customers/{customer_id}", {"customer": changes})


def read(client, customer_id):
    return client.get(f"/customers/{customer_id}").get_json()["customer"]


def refused_params(response):
    """The parameters of a refusal, each of which is shop_api_invalid_param."""
    entries = response.get_json()["errors"]
    assert (response.status_code, {entry["code"] for entry in entries}) == (
        400,
        {"shop_api_invalid_param"},
    )
    return sorted(entry["param"] for entry in entries)


def refusal(response):
    (entry,) = response.get_json()["errors"]
    return response.status_code, entry["code"]


def customers_of(client):
    return client.get("/customers", {"filter[role]": "all"}).get_json()["customers"]


def shown(response):
    return f"{response.status} {response.headers} {response.get_data(as_text=True)}"
