"""A pod is compared with few of many disruption budgets, and with every one that may be about it."""

from spinney.api.labels import APP_NAME
from spinney.api.meta import ObjectMeta
from spinney.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from spinney.api.selectors import LabelSelector, LabelSelectorRequirement
from spinney.kube.keys import Key, key_of
from spinney.sim.replay.budget_index import BudgetIndex


def a_budget(name: str, selector: LabelSelector | None, namespace: str = "default") -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace), spec=PodDisruptionBudgetSpec(selector=selector)
    )


def of(app: str, **more: str) -> LabelSelector:
    return LabelSelector(match_labels={APP_NAME: app, **more})


def test_only_budgets_that_may_be_about_a_pod_are_looked_at() -> None:
    """With one budget for each of thousands of jobs, a replay compared each pod with all of them, at each change."""
    index: BudgetIndex[str] = BudgetIndex()
    with_app = LabelSelectorRequirement(key=APP_NAME, operator="Exists")
    budgets = (
        a_budget("a", of("a", tier="front")),
        a_budget("b", of("b")),
        a_budget("any", LabelSelector(match_expressions=(with_app,))),
        a_budget("all", LabelSelector()),
        a_budget("none", None),
        a_budget("there", of("a"), "elsewhere"),
    )
    for budget in budgets:
        index.put(budget, budget.metadata.name)

    def about(*apps: str) -> list[str]:
        return sorted(kept for _, kept in index.about("default", [{APP_NAME: app} for app in apps]))

    assert about("a") == ["a", "all", "any", "none"]
    assert about("c") == ["all", "any", "none"]
    assert about("a", "b", "a") == ["a", "all", "any", "b", "none"]
    index.put(a_budget("b", of("c")), "b again")
    index.remove(key_of(budgets[0]))
    index.remove(Key("default", "unknown"))
    assert about("a", "b") == ["all", "any", "none"]
    assert about("c") == ["all", "any", "b again", "none"]
