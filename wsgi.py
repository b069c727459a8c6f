"""The WSGI entry point: ``gunicorn wsgi:app``, ``flask --app wsgi``."""

import sys

from app import create_app
from app.config import SettingsError
from app.plugins import PluginError

try:
    app = create_app()
except (SettingsError, PluginError) as error:
    # Somebody's setting or plugin, no fault of the code: the message says it all. Exit status 3
    # tells gunicorn to stop instead of starting the next worker.
    sys.stderr.write(f"The service cannot start: {error}\n")
    raise SystemExit(3) from None
