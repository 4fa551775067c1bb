"""The test plan of the scheduler backend framework, draft: each line is carried out by the tests named here."""

from collections.abc import Sequence

from tests.backends.plans import Plan, check, lines

REGISTRY = "tests/backends/test_registry.py"
CONTRACTS = "tests/backends/test_builtin_contracts.py"
KAI = "tests/backends/test_kai_translation.py"
NATIVE = "tests/backends/test_native_gangs.py"
CONTROLLER = "tests/operator/test_backend_controller.py"
THIN_LINE = "tests/operator/test_thin_line_operator.py"
CONFIGURATION = "tests/operator/test_configuration.py"

PLAN: Plan = {
    "registry: registration, success": [
        f"{REGISTRY}::test_the_built_in_backends_are_there",
        f"{CONTRACTS}::TestKai::test_registers_under_its_name_and_aliases",
    ],
    "registry: registration, duplicate": [
        f"{REGISTRY}::test_two_backends_of_one_name_are_refused",
        f"{CONFIGURATION}::test_kube_under_both_names_is_listed_twice",
    ],
    "registry: retrieval, existing and not existing": [f"{REGISTRY}::test_the_registry_is_initialised_once"],
    "KAI: pod spec mutation": [
        f"{KAI}::test_pods_find_group_and_sub_group",
        f"{CONTRACTS}::TestKai::test_prepares_pods_without_undoing_what_the_operator_did",
    ],
    "KAI: configuration validation": [f"{CONTRACTS}::TestKai::test_its_configuration_is_read_strictly"],
    "KAI: ValidatePodCliqueSet, allow and reject": [
        f"{KAI}::test_exactly_one_queue_must_be_named",
        f"{KAI}::test_a_set_level_constraint_with_scaling_groups_is_a_degradation",
    ],
    "kube: pod spec mutation": [
        f"{NATIVE}::test_only_the_minimum_is_in_the_gang",
        f"{CONTRACTS}::TestKubeScheduler::test_prepares_pods_without_undoing_what_the_operator_did",
    ],
    "kube: configuration validation": [
        f"{CONTRACTS}::TestKubeScheduler::test_its_configuration_is_read_strictly",
        f"{CONFIGURATION}::test_kube_config_is_typed_and_has_the_drafts_spelling_too",
        f"{NATIVE}::test_a_cluster_without_native_gangs_stops_the_operator",
    ],
    "kube: ValidatePodCliqueSet, allow and reject": [
        f"{NATIVE}::test_without_native_gangs_the_workload_is_told",
        f"{NATIVE}::test_mixed_priorities_are_rejected",
        f"{NATIVE}::test_a_part_of_a_gang_cannot_be_confined",
    ],
    "PodCliqueSet controller: PodGang creation with empty references": [
        f"{CONTROLLER}::test_gangs_are_created_with_empty_references",
    ],
    "PodCliqueSet controller: PodGang update with references": [
        f"{THIN_LINE}::test_initialized_is_false_before_it_is_true",
        f"{THIN_LINE}::test_a_deleted_pod_is_replaced_and_referred_to_before_its_gate_opens",
    ],
    "PodClique controller: backend errors and failure handling": [
        f"{CONTROLLER}::test_no_pod_is_created_while_the_backend_fails",
        f"{CONTROLLER}::test_failures_are_retried_less_and_less_often",
        f"{CONTROLLER}::test_a_backend_that_does_not_answer_holds_up_nobody_else",
        f"{CONTROLLER}::test_a_pod_that_cannot_be_prepared_is_tried_again",
    ],
    "PodClique controller: pod creation with backend mutation": [
        f"{CONTROLLER}::test_a_backend_is_asked_in_the_promised_order",
        f"{CONTROLLER}::test_pods_beyond_a_native_gang_follow_it",
    ],
    "PodClique controller: the gate goes after Initialized": [
        f"{THIN_LINE}::test_a_set_becomes_a_gang_of_released_pods",
        f"{CONTROLLER}::test_a_backend_may_hold_gates",
    ],
    "OperatorConfiguration: validation": [f"{CONFIGURATION}::test_the_operator_does_not_start_and_names_the_line"],
    "OperatorConfiguration: backend configuration parsing": [
        f"{CONFIGURATION}::test_kube_config_is_typed_and_has_the_drafts_spelling_too",
        "tests/backends/test_document_examples.py::test_an_example_means_what_its_document_says",
    ],
    "OperatorConfiguration: default values": [
        f"{CONFIGURATION}::test_defaults_are_groves",
        f"{CONFIGURATION}::test_an_empty_file_means_kube_scheduler",
    ],
    "OperatorConfiguration: invalid backend names": [
        f"{CONFIGURATION}::test_an_unknown_backend_is_named_with_the_nearest_one",
    ],
    "e2e: all scenarios pass on all supported schedulers": [
        "tests/e2e/test_backends.py::test_every_scenario_runs_on_every_backend_or_a_row_says_why_not",
    ],
    "requirement: with empty profiles only default-scheduler is admitted": [
        "tests/operator/test_admission.py::test_a_scheduler_that_cannot_run_the_set_is_refused",
    ],
    "story 3: migration between schedulers": [
        "tests/backends/test_migration.py::test_every_step_of_the_page_is_walked",
    ],
}


@lines(PLAN)
def test_a_line_of_the_plan_is_carried_out(line: str, nodes: Sequence[str]) -> None:
    """Each line of the plan has tests that exist and run."""
    check(line, nodes)
