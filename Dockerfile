# Build with `docker build -t shop-api .`. docs/operations.md describes how to run the container.
FROM python:3.11-slim AS site
WORKDIR /site
COPY requirements-docs.txt .
RUN pip install --no-cache-dir --require-hashes -r requirements-docs.txt
COPY mkdocs.yml openapi.json CONTRIBUTING.md CHANGELOG.md SECURITY.md ./
COPY tools/site_pages.py tools/field_page.py tools/
COPY clients/python/README.md clients/python/
COPY clients/typescript/README.md clients/typescript/
COPY docs docs
RUN NO_MKDOCS_2_WARNING=1 mkdocs build --strict

FROM python:3.11-slim

RUN useradd --system --create-home --home-dir /srv/shop-api shop
WORKDIR /srv/shop-api

COPY requirements.txt .
RUN python -m venv .venv && .venv/bin/pip install --no-cache-dir --require-hashes -r requirements.txt

COPY pyproject.toml README.md LICENSE wsgi.py gunicorn.conf.py ./
COPY server server
COPY migrations migrations
COPY app app
COPY docs docs
COPY --from=site /site/app/site app/site
RUN HATCH_BUILD_NO_HOOKS=true .venv/bin/pip install --no-cache-dir --no-deps --editable .
RUN install --directory --owner=shop --group=shop --mode=0700 instance

USER shop
ENV HOST=0.0.0.0 PORT=8000 PYTHONUNBUFFERED=1 PATH=/srv/shop-api/.venv/bin:$PATH
EXPOSE 8000
VOLUME /srv/shop-api/instance
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s CMD \
    [".venv/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
# exec replaces the shell, so that gunicorn receives the signals.
CMD ["sh", "-c", ".venv/bin/shop-api db upgrade && exec .venv/bin/gunicorn wsgi:app"]
