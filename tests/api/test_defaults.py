"""Defaults of a PodCliqueSet."""

from spinney.api.grove import PodCliqueSet
from spinney.api.schema.defaults import default_pod_clique_set
from spinney.api.struct import convert, to_json
from tests.api.samples import DATA, a_clique, a_set, defaulted
from tests.workloads.files import documents


def test_fills_in_what_was_left_out() -> None:
    """A minimal set gets everything the CRD and the webhook would fill in."""
    manifest = a_set(
        {"name": "worker", "spec": {"podSpec": {"containers": []}}}, groups=[{"name": "g", "cliqueNames": ["worker"]}]
    )
    del manifest["spec"]["replicas"]
    del manifest["metadata"]["namespace"]
    assert to_json(defaulted(manifest)) == {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "serve", "namespace": "default"},
        "spec": {
            "replicas": 0,
            "template": {
                "cliqueStartupType": "CliqueStartupTypeAnyOrder",
                "headlessServiceConfig": {"publishNotReadyAddresses": True},
                "terminationDelay": "4h0m0s",
                "cliques": [
                    {
                        "name": "worker",
                        "spec": {
                            "replicas": 1,
                            "minAvailable": 1,
                            "podSpec": {
                                "containers": [],
                                "restartPolicy": "Always",
                                "terminationGracePeriodSeconds": 30,
                            },
                        },
                    }
                ],
                "podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["worker"], "replicas": 1, "minAvailable": 1}],
            },
        },
    }


def test_a_minimum_follows_the_replicas_it_ends_up_with() -> None:
    """Replicas 0 becomes 1, and so does the minimum that was left out with it."""
    spec = defaulted(a_set(a_clique(replicas=0))).spec.template.cliques[0].spec
    assert (spec.replicas, spec.min_available) == (1, 1)


def test_autoscaling_starts_at_the_replicas() -> None:
    """A lower bound left out is the number of replicas, for cliques and for groups."""
    pcs = defaulted(
        a_set(
            a_clique(replicas=3, autoScalingConfig={"maxReplicas": 5}),
            groups=[{"name": "g", "cliqueNames": ["x"], "replicas": 2, "scaleConfig": {"maxReplicas": 4}}],
        )
    )
    clique, group = pcs.spec.template.cliques[0], pcs.spec.template.pod_clique_scaling_groups[0]
    assert clique.spec.auto_scaling_config is not None
    assert group.scale_config is not None
    assert (clique.spec.auto_scaling_config.min_replicas, group.scale_config.min_replicas) == (3, 2)


def test_an_update_strategy_without_a_type_recreates() -> None:
    """The type is filled in where the object is present, and only there."""
    manifest = a_set()
    assert defaulted(manifest).spec.update_strategy is None
    manifest["spec"]["updateStrategy"] = {}
    strategy = defaulted(manifest).spec.update_strategy
    assert strategy is not None
    assert strategy.type == "RollingRecreate"


def test_what_was_given_stays() -> None:
    """Given values are kept, the original is not touched, and defaulting again changes nothing."""
    pcs = convert(PodCliqueSet, documents(DATA / "pod-clique-set-full.yaml")[0])
    once = default_pod_clique_set(pcs)
    assert default_pod_clique_set(once) == once
    assert once.spec.template.termination_delay == "90s"
    assert once.spec.template.headless_service_config == pcs.spec.template.headless_service_config
    assert "restartPolicy" not in pcs.spec.template.cliques[0].spec.pod_spec
