"""Write the console script ``shop-api`` for the code in this folder into its virtual environment.

An installed wheel brings the same script. This one runs the code of the checkout.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Runs as a shell script that starts Python, because the path in a #! line cannot contain blanks.
SCRIPT = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys

sys.path.insert(0, {root!r})

from app.main import main

main()
"""


def write_script(folder: Path, python: Path) -> Path:
    """Write the script into a folder and return its path.

    Args:
        folder: the folder with the programs of a virtual environment.
        python: the interpreter of the virtual environment.
    """
    script = folder / "shop-api"
    script.write_text(SCRIPT.format(python=python, root=str(ROOT)))
    script.chmod(0o755)
    return script


if __name__ == "__main__":
    programs = Path(sys.prefix, "bin")
    write_script(programs, programs / "python")
