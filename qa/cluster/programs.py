"""Find the installed programs, and run them as an unprivileged user."""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import psutil

PACKAGES = {
    "initdb": "postgresql",
    "pg_basebackup": "postgresql",
    "postgres": "postgresql",
    "pgbouncer": "pgbouncer",
}
LOAD_BALANCERS = {"haproxy": "haproxy", "nginx": "nginx"}
PATRONI = {"patroni": "patroni", "etcd": "etcd-server", "haproxy": "haproxy"}
"""Debian packages by program."""

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"


@cache
def find(program):
    """Return the path of a program, or None. Debian keeps those of PostgreSQL outside of PATH."""
    if found := shutil.which(program, path=f"{os.environ['PATH']}:{_SYSTEM_FOLDERS}"):
        return found
    versions = Path("/usr/lib/postgresql").glob(f"*/bin/{program}")
    return max(map(str, versions), default=None, key=lambda path: int(path.split("/")[4]))


def version(program):
    """Return the version that a program prints."""
    line = subprocess.run([find(program), "--version"], capture_output=True, text=True, check=True)
    return (
        re.sub(r"[()]|\s*Debian.*", "", line.stdout.splitlines()[0])
        .replace("postgres P", "P")
        .strip()
    )


def missing(*programs):
    """Return why programs cannot be used, or an empty string. By default, checks PACKAGES."""
    known = PACKAGES | LOAD_BALANCERS | PATRONI
    packages = sorted({known[name] for name in programs or PACKAGES if find(name) is None})
    return f"not installed: {', '.join(packages)} (Debian packages)" if packages else ""


def user():
    """Return the user that runs the servers. PostgreSQL and PgBouncer do not run as root."""
    if os.getuid():
        return None
    return "postgres" if _exists("postgres") else "nobody"


def _exists(name):
    return name in {entry.pw_name for entry in pwd.getpwall()}


def why_not_created(name):
    """Return why a user does not exist and cannot be created, or an empty string."""
    if _exists(name) or find("useradd"):
        return ""
    return f"useradd, which creates the user {name}, is not installed (Debian package passwd)"


def create_user(name):
    """Create a user of the system, unless it exists."""
    if not _exists(name):
        subprocess.run([find("useradd"), "--shell", "/bin/bash", name], check=True)


def new_folder(prefix="shop-cluster-"):
    """Return a new folder that only the servers' user and root can read."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    give(folder)
    return folder


def give(path, owner=None):
    """Make a user, by default the servers' user, the owner of a path."""
    if owner := owner or user():
        shutil.chown(path, owner)


def run(program, *arguments, **environment):
    """Run a program to its end. An error contains its output."""
    done = subprocess.run(
        [find(program), *map(str, arguments)],
        user=user(),
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"} | environment,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{program}: {done.stdout[-2000:]}"


def start(program, *arguments, log, owner=None):
    """Start a program as a user, with its output in a log, and return its process."""
    with log.open("a") as output:
        return subprocess.Popen(
            [find(program), *map(str, arguments)],
            user=owner or user(),
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            cwd="/",
            stdout=output,
            stderr=subprocess.STDOUT,
        )


@contextmanager
def frozen(process):
    """Freeze a process and its children for as long as the block lasts."""
    main = psutil.Process(process.pid)
    main.suspend()  # first, so that it starts no other children
    every = [main, *main.children(recursive=True)]
    try:
        for each in every:
            each.suspend()
        yield
    finally:
        for each in reversed(every):
            with suppress(psutil.NoSuchProcess):
                each.resume()
