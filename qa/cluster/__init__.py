"""Real servers on this machine: PostgreSQL with standbys, PgBouncer, Patroni, load balancers, the service.

They run from installed packages (Debian: ``postgresql``, ``pgbouncer``, …), as an unprivileged user
and in a temporary folder. The test suite, ``make cluster`` and ``make cluster-test`` use them.
"""
