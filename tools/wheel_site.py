"""Build hook of hatchling: put the documentation site into the wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SiteHook(BuildHookInterface[Any]):
    """Builds the site in a temporary folder. Raises CalledProcessError if MkDocs fails."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the site to the files of a wheel. An editable install shows that of ``make docs``."""
        if version == "editable":
            return
        self._folder = TemporaryDirectory()
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
        subprocess.run(  # noqa: S603  # a known program, no shell
            [*command, "--site-dir", self._folder.name],
            cwd=self.root,
            env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
            check=True,
        )
        build_data["force_include"][self._folder.name] = "app/site"

    def finalize(self, version: str, *_: object) -> None:
        """Remove the temporary folder."""
        if version != "editable":
            self._folder.cleanup()
