"""The WSGI application for ``gunicorn wsgi:app``."""

from app.main import load_app

app = load_app()
