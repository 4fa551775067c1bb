"""Compiling ahead what measured processes import, as an installation does.

Where the interpreter is told to write no bytecode, modules may never have been compiled, and half a second of every
start would be the compiler's.
"""

import os
import subprocess
import sys


def compile_ahead(*modules: str) -> None:
    """Import modules once in processes of their own that write bytecode, whatever the environment says."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for module in modules:
        subprocess.run([sys.executable, "-c", f"import {module}"], env=environment, check=True)
