"""*As a request*: the request that a page stands for, as curl and as Python (admin 2)."""

from __future__ import annotations

import json
import shlex
from pprint import pformat
from urllib.parse import parse_qsl, urlsplit

from app.admin.calls import ApiRequest


def curl(sent: ApiRequest) -> str:
    """Return a command for a shell. ``$KEY`` is the consumer key and the secret."""
    parts = ['curl -u "$KEY"']
    if sent.method != "GET":
        parts.append(f"-X {sent.method}")
    parts.append(shlex.quote(sent.url))
    if sent.body is not None:
        parts.append("-H 'Content-Type: application/json'")
        parts.append(f"-d {shlex.quote(json.dumps(sent.body, ensure_ascii=False))}")
    return " \\\n  ".join(parts)


def python(sent: ApiRequest) -> str:
    """Return a program with ``requests``. KEY and SECRET are in the environment."""
    url = urlsplit(sent.url)
    arguments = [repr(url._replace(query="").geturl())]
    if query := parse_qsl(url.query, keep_blank_values=True):
        arguments.append(f"params={dict(query)!r}")
    if sent.body is not None:
        arguments.append(f"json={pformat(sent.body, width=88, sort_dicts=False)}")
    arguments.append('auth=(os.environ["KEY"], os.environ["SECRET"])')
    inner = "".join(f"    {each},\n" for each in arguments)
    return (
        f"import os\n\nimport requests\n\nresponse = requests.{sent.method.lower()}(\n{inner})\n"
        "response.raise_for_status()\nprint(response.json())"
    )
