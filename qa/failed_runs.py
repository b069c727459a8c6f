"""Files that a failed run of ``make histories`` or ``make cluster-test`` leaves behind."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

FOLDER = Path("failed-runs")
"""Has a folder for each failed run, in the current folder."""

_INTERNAL = {"shop_api_internal_error", "Error handling request"}
"""Messages of responses with the status 500. Lost databases have other ones."""

_ABORTED = {"in _with_rest", "sqlalchemy.exc.OperationalError"}
"""Parts of the traceback of a list that a lost database aborts after its beginning was sent."""


def keep(name: str, logs: Iterable[Path], files: Mapping[str, bytes]) -> Path:
    """Copy the logs of a failed run, write other files beside them, and return their folder.

    Args:
        name: of the run. The time is added.
        files: the content of each file, by its name.
    """
    folder = FOLDER / f"{name}-{time.strftime('%Y%m%dT%H%M%S')}"
    folder.mkdir(parents=True, exist_ok=True)
    for log in logs:
        if log.exists():
            shutil.copyfile(log, folder / log.name)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    return folder


def internal_errors(logs: Iterable[Path]) -> list[str]:
    """Return the tracebacks of all responses with the status 500, each after the name of its log.

    A client does not see all of them: connections are closed before some responses.
    """
    return [
        f"{log.name}: {entry.get('exception', entry['message'])}"
        for log in logs
        if log.exists()
        for line in log.read_text(errors="replace").splitlines()
        if any(message in line for message in _INTERNAL)
        if (entry := _entry(line)) and entry.get("message") in _INTERNAL
        if not all(part in entry.get("exception", "") for part in _ABORTED)
    ]


def _entry(line: str) -> dict[str, str]:
    try:
        entry: dict[str, str] = json.loads(line)
    except ValueError:  # a process was killed while it wrote
        return {}
    return entry
