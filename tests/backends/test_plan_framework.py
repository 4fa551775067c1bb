"""The test plan of the scheduler backend framework, final document: each line is carried out by the tests named."""

from collections.abc import Sequence

from tests.backends.plans import Plan, check, lines

CONTRACTS = "tests/backends/test_builtin_contracts.py"
CONTROLLER = "tests/operator/test_backend_controller.py"
THIN_LINE = "tests/operator/test_thin_line_operator.py"
CONFIGURATION = "tests/operator/test_configuration.py"

BACKENDS = (
    "TestKubeScheduler",
    "TestNativeGangs135",
    "TestNativeGangs136",
    "TestNativeGangs137",
    "TestComposites",
    "TestKai",
    "TestCoscheduling",
    "TestVolcano",
    "TestSpinneyScheduler",
)

PLAN: Plan = {
    "unit: backend interface and registry": [
        "tests/backends/test_registry.py::test_the_built_in_backends_are_there",
        "tests/backends/test_registry.py::test_the_registry_is_initialised_once",
        "tests/backends/test_registry.py::test_an_installed_backend_is_found_by_its_entry_point",
        "tests/backends/test_registry.py::test_an_unusable_backend_says_why",
        "tests/backends/test_third_party_install.py::test_a_workload_comes_up_through_it",
    ],
    "unit: PreparePod of each backend": [
        f"{CONTRACTS}::{backend}::test_prepares_pods_without_undoing_what_the_operator_did" for backend in BACKENDS
    ],
    "unit: ValidatePodCliqueSet of each backend": [
        f"{CONTRACTS}::{backend}::{name}"
        for backend in BACKENDS
        for name in ("test_accepts_its_workload", "test_a_required_topology_is_honoured_or_rejected")
    ],
    "unit: SyncPodGang and OnPodGangDelete of each backend": [
        f"{CONTRACTS}::{backend}::{name}"
        for backend in BACKENDS
        for name in ("test_syncing_again_writes_nothing", "test_what_it_makes_goes_with_the_gang")
    ],
    "unit: controllers and hooks, PodGang lifecycle": [
        f"{CONTROLLER}::test_a_backend_is_asked_in_the_promised_order",
        f"{CONTROLLER}::test_a_gang_is_held_until_its_backend_has_cleaned_up",
        f"{THIN_LINE}::test_initialized_is_false_before_it_is_true",
    ],
    "unit: controllers and hooks, pod creation and scheduling gates": [
        f"{CONTROLLER}::test_no_pod_is_created_while_the_backend_fails",
        f"{CONTROLLER}::test_a_backend_may_hold_gates",
        f"{THIN_LINE}::test_a_set_becomes_a_gang_of_released_pods",
        f"{THIN_LINE}::test_scaled_gangs_wait_for_the_base_gang",
    ],
    "unit: OperatorConfiguration parsing and defaulting": [
        f"{CONFIGURATION}::test_an_empty_file_means_kube_scheduler",
        f"{CONFIGURATION}::test_the_default_profile_is_found_in_both_forms",
        f"{CONFIGURATION}::test_the_operator_does_not_start_and_names_the_line",
        "tests/backends/test_document_examples.py::test_an_example_means_what_its_document_says",
    ],
    "capability mismatch: fail submit, or pass through with a condition": [
        "tests/operator/test_admission.py::test_a_required_topology_that_kube_cannot_honour_is_refused",
        "tests/operator/test_admission.py::test_degradations_are_warnings",
        f"{CONTROLLER}::test_degradations_are_written_to_the_set",
    ],
    "e2e 1: the harness supplies OperatorConfiguration": [
        "tests/e2e/test_backends.py::test_each_row_is_the_default_of_its_configuration",
    ],
    "e2e 2: every scenario passes with kai-scheduler as the default": [
        "tests/e2e/test_backends.py::test_kai_comes_first",
        "tests/e2e/test_backends.py::test_every_scenario_of_grove_is_there",
    ],
    "e2e 3: the scenarios run against the other backends": [
        "tests/e2e/test_backends.py::test_every_backend_has_a_row",
        "tests/e2e/test_backends.py::test_every_scenario_runs_on_every_backend_or_a_row_says_why_not",
        "tests/operator/test_native_gangs_really.py::test_all_of_the_minimum_or_nothing",
    ],
}


@lines(PLAN)
def test_a_line_of_the_plan_is_carried_out(line: str, nodes: Sequence[str]) -> None:
    """Each line of the plan has tests that exist and run."""
    check(line, nodes)
