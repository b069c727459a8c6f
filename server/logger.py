"""The log of gunicorn, with lines of JSON like those of the app."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from gunicorn import glogging


class JsonFormatter(logging.Formatter):
    """Formats a log record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        timestamp = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        line = {
            "message": record.getMessage(),
            "level": record.levelname.lower(),
            "timestamp": timestamp,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class Logger(glogging.Logger):
    """gunicorn's logger, with lines of JSON."""

    def setup(self, cfg: Any) -> None:
        """Configure the log. Called at the start and on each reload."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonFormatter())
