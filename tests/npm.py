"""Tools from npm, installed once per lock file next to the file if possible."""

import fcntl
import shutil
import subprocess

import pytest

missing = [tool for tool in ("node", "npm") if not shutil.which(tool)]
needs_node = pytest.mark.skipif(
    bool(missing), reason=f"{' and '.join(missing)} not installed: the tests on Node.js are skipped"
)


def install(folder):
    """Return a folder's node_modules, as its lock file says."""
    modules = folder / "node_modules"
    lock, installed = folder / "package-lock.json", modules / "installed.json"
    with (
        folder / ".npmrc"
    ).open() as turn:  # several test processes can call this at the same time
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not installed.exists() or installed.read_bytes() != lock.read_bytes():
            command = ["npm", "ci", "--no-audit", "--no-fund", "--fetch-retries=0"]
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=600, check=False
            )
            if done.returncode:
                reason = done.stderr.strip().splitlines()[0]
                pytest.skip(f"npm's packages cannot be installed here: {reason}")
            shutil.copy(lock, installed)
    return modules
