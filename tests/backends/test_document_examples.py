"""Every example configuration of the two documents loads, and means what its document says.

The examples stand here as the documents have them, comments included.
"""

from dataclasses import dataclass

import pytest

from spinney.backends import every_backend
from spinney.backends.kube import KubeSchedulerConfig
from spinney.operator.configuration import check

KUBE = "default-scheduler"
KAI = "kai-scheduler"


@dataclass(frozen=True)
class Example:
    """An example, and what its document says about it."""

    text: str
    default: str
    enabled: tuple[str, ...]
    gang_scheduling: bool = False


FINAL = {
    "omitted": Example(
        """
# --- Omit scheduler profiles completely ---
# Same as profiles: [{ name: "kube-scheduler", default: true }]
""",
        KUBE,
        (KUBE,),
    ),
    "what an omitted block stands for": Example(
        """
scheduler:
  profiles:
    - name: "kube-scheduler"
      default: true
""",
        KUBE,
        (KUBE,),
    ),
    "single, no configuration": Example(
        """
# --- Single scheduler profile, no specific configuration ---
scheduler:
  profiles:
    - name: "kube-scheduler"
      default: true
      # In this configuration Gang Scheduling will not be enabled
""",
        KUBE,
        (KUBE,),
    ),
    "single, with configuration": Example(
        """
# --- Single scheduler profile with configuration ---
scheduler:
  profiles:
    - name: "kube-scheduler"
      config:
        gangScheduling: true
      default: true
""",
        KUBE,
        (KUBE,),
        gang_scheduling=True,
    ),
    "several, kube-scheduler the default": Example(
        """
# --- Multiple scheduler profiles; default is kube-scheduler ---
scheduler:
  profiles:
    - name: "kube-scheduler"
      config:
        gangScheduling: true
      default: true
    - name: "kai-scheduler" # no scheduler-specific configuration is defined
""",
        KUBE,
        (KUBE, KAI),
        gang_scheduling=True,
    ),
    "only kai-scheduler": Example(
        """
# --- Only kai-scheduler profile; kube-scheduler is still implicitly available but kai-scheduler is the default ---
scheduler:
  profiles:
    - name: "kai-scheduler"
      config: {}
      default: true
""",
        KAI,
        (KAI, KUBE),
    ),
    "no profile is marked": Example(
        """
scheduler:
  profiles:
    - name: "kai-scheduler"
""",
        KUBE,
        (KAI, KUBE),
    ),
}

DRAFT = {
    "style 1: omitted": Example(
        """
# --- Style 1: Omit scheduler (all defaults) ---
# Same as profiles: [{ name: "kube-scheduler", default: true }]
# (scheduler block can be omitted entirely)
""",
        KUBE,
        (KUBE,),
    ),
    "style 2: single, no options": Example(
        """
# --- Style 2: Single backend, no backend-specific options ---
scheduler:
  profiles:
    - name: "kube-scheduler"
      default: true
""",
        KUBE,
        (KUBE,),
    ),
    "style 3: single, with options": Example(
        """
# --- Style 3: Single backend with backend-specific options (config = KubeSchedulerConfig) ---
scheduler:
  profiles:
    - name: "kube-scheduler"
      config:
        GangScheduling: true
      default: true
""",
        KUBE,
        (KUBE,),
        gang_scheduling=True,
    ),
    "style 4: several, kube-scheduler the default": Example(
        """
# --- Style 4: Multiple backends; default is kube-scheduler ---
scheduler:
  profiles:
    - name: "kube-scheduler"
      config:
        GangScheduling: false
      default: true
    - name: "kai-scheduler"
      config: {}
""",
        KUBE,
        (KUBE, KAI),
    ),
    "style 5: several, kai-scheduler the default": Example(
        """
# --- Style 5: Multiple backends; default is kai-scheduler ---
scheduler:
  profiles:
    - name: "kube-scheduler"
      config:
        GangScheduling: false
    - name: "kai-scheduler"
      config: {}
      default: true
""",
        KAI,
        (KUBE, KAI),
    ),
    "style 6: only kai-scheduler": Example(
        """
# --- Style 6: Only KAI profile, but kube-scheduler is also active even if not set in profiles ---
scheduler:
  profiles:
    - name: "kai-scheduler"
      config: {}
      default: true
""",
        KAI,
        (KAI, KUBE),
    ),
    "table: kube-scheduler only": Example("scheduler: {profiles: []}", KUBE, (KUBE,)),
    "table: kube-scheduler, tuned": Example(
        'scheduler: {profiles: [{ name: "kube-scheduler", config: { GangScheduling: true }, default: true }]}',
        KUBE,
        (KUBE,),
        gang_scheduling=True,
    ),
    "table: kai-scheduler the default": Example(
        'scheduler: {profiles: [{ name: "kai-scheduler", config: {}, default: true }]}', KAI, (KAI, KUBE)
    ),
}


@pytest.mark.parametrize(
    "example",
    [*FINAL.values(), *DRAFT.values()],
    ids=[*(f"final: {title}" for title in FINAL), *(f"draft: {title}" for title in DRAFT)],
)
def test_an_example_means_what_its_document_says(example: Example) -> None:
    """The default, the enabled backends in their order, and gang scheduling of kube-scheduler are as written."""
    profiles = check(example.text, every_backend()).profiles
    assert profiles.default == example.default
    assert tuple(profile.name for profile in profiles.enabled) == example.enabled
    (kube,) = [profile for profile in profiles.enabled if profile.name == KUBE]
    assert kube.config == KubeSchedulerConfig(gang_scheduling=example.gang_scheduling)
