"""Asks for known weaknesses of what a lock file pins: fails where there is one, says so where nobody can be asked.

``pip-audit`` counts what the advisory service knows nothing about as skipped. Where that is everything, the service
was out of reach, which is no verdict about the lock.
"""

import json
import subprocess
import sys


def main(lock: str) -> int:
    """Print what was found, and return 1 if that is a weakness."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", lock, "--disable-pip", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own arguments
    try:
        dependencies = json.loads(done.stdout)["dependencies"]
    except ValueError:
        dependencies = []
    asked = [each for each in dependencies if "skip_reason" not in each]
    if not asked:
        sys.stderr.write(done.stderr)
        print(f"*** NOT AUDITED: the advisory service is out of reach, so nothing was asked about {lock} ***")
        return 0
    weak = [each for each in asked if each["vulns"]]
    for each in weak:
        for found in each["vulns"]:
            mended = ", ".join(found["fix_versions"]) or "no version yet"
            print(f"{each['name']} {each['version']}: {found['id']}, mended in {mended}")
    print(f"{lock}: {len(asked)} of {len(dependencies)} asked about, {len(weak)} with a known weakness")
    return 1 if weak else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
