"""Which Kubernetes the server says it is."""

import platform

from spinney.api.struct import JSON


def git_version(kubernetes_version: str) -> str:
    """Return the version clients parse: the Kubernetes minor that is played, marked as Spinney's."""
    return f"v{kubernetes_version}.0+spinney"


def version_info(kubernetes_version: str) -> JSON:
    """Return the body of ``/version``."""
    major, minor = kubernetes_version.split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": git_version(kubernetes_version),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": f"python{platform.python_version()}",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
