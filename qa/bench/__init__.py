"""Measure what a document promises about the cost of requests and commands (Linux).

``make bench`` measures everything and writes docs/performance.md. ``make bench-quick`` omits the
large shops and writes nothing. ``.venv/bin/python -m qa.bench small`` measures one part.
``.venv/bin/python -m qa.bench --beside CHECKOUT`` compares this version with another one.

Set ``BENCH_DATA=folder`` to reuse the large shops in later runs, because loading a million
customers takes minutes. By default, the bench starts a PostgreSQL server from a Python package
without pg_trgm. ``BENCH_POSTGRESQL=url`` uses another server on this machine, as a superuser.

- ``shops.py``: databases, empty or with 100,000 or 1,000,000 customers, coupons and orders each.
- ``servers.py``: gunicorn, its resource usage, and the clients that send requests.
- ``workloads.py``: requests that create and update records.
- ``lists.py``: requests for every list, sort and filter.
- ``measuring.py``: measuring workloads, and the rows with their targets.
- ``report.py``: the output format of the rows.
- The other modules have the rows.

Two workloads that are compared alternate round by round, on one machine and in one run, so that
other load on the machine affects both. The figure of a row is the median over the rounds.
"""
