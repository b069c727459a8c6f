"""Real servers on the loopback interface: PostgreSQL with standbys, PgBouncer, and the service.

They run from installed packages (Debian: ``postgresql`` and ``pgbouncer``), as an unprivileged user
and in a temporary folder. The test suite, ``make cluster`` and ``make cluster-test`` use them.
"""
