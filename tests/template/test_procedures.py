"""What tries out the procedures of docs/operations.md and docs/deploy.md: each that changes something has a test."""

from __future__ import annotations

import pytest
from tests.template.cloudformation import ROOT

PROCEDURES = {
    "a quota for a project, none, or the stack's again": (
        "tests/cli/test_projects.py::test_a_project_is_given_a_quota_none_or_the_stacks",
    ),
    "a project suspended and resumed": ("tests/cli/test_projects.py::test_a_project_is_suspended_and_resumed",),
    "a project deleted, wherever it is interrupted": (
        "tests/operating/test_erasing.py::test_wherever_it_is_killed_the_next_run_goes_on",
    ),
    "a project exported and imported, wherever it is interrupted": (
        "tests/operating/test_moving.py::test_wherever_an_export_or_an_import_is_killed_the_next_run_goes_on",
        "tests/stack/test_moving.py",
    ),
    "operators' commands under the stack's role, and the audit trail": ("tests/stack/test_operators.py",),
    "a gradual deployment, and one that goes back (by hand: CodeDeploy itself is not run)": (
        "tests/sam/test_deploy_chosen.py::test_messages_go_through_the_versions_that_are_live",
    ),
    "projects made, renamed, opened to hosts": (
        "tests/cli/test_projects.py::test_a_project_is_renamed_and_its_targets_are_set_and_closed",
    ),
    "tokens listed, revoked, rotated": (
        "tests/cli/test_projects.py::test_a_rotated_token_acts_beside_the_new_one_for_as_long_as_is_asked",
    ),
    "pushhub reseal, a key changed on a live stack": (
        "tests/stack/test_credentials.py::test_secrets_are_found_nowhere_and_survive_a_change_of_key",
    ),
    "pushhub signing-secret rotate": (
        "tests/cli/test_signing_secret.py::test_rotating_keeps_the_present_one_and_waits_ten_minutes",
    ),
    "sweep by hand with {'everything': true}": (
        "tests/stack/test_lost_tables.py::test_a_lost_table_is_put_in_place_and_everything_goes_on",
    ),
    "a table lost and restored, or made anew (pushhub deploy table)": (
        "tests/stack/test_lost_tables.py::test_a_lost_table_is_put_in_place_and_everything_goes_on",
    ),
    "restoring a table's backup itself (on the emulator, which takes no time for it)": (
        "tests/stack/test_lost_tables.py::test_a_lost_table_is_put_in_place_and_everything_goes_on",
    ),
    "records that cannot be read, passed over and named": (
        "tests/operating/test_rebuild.py::test_records_that_cannot_be_read_are_named_and_the_rest_is_put_back",
    ),
    "the messages table lost in traffic, pushhub rebuild": (
        "tests/stack/test_lost_table.py::test_traffic_goes_on_after_the_messages_table_was_lost",
    ),
    "dead letters put back by hand": ("tests/stack/test_redrive.py::test_a_dead_letter_that_is_put_back_is_worked_on",),
    "dead letters put back with start-message-move-task (what AWS asks for: the emulator has no such call)": (
        "tests/template/test_queues.py::test_dead_letters_can_be_moved_back_as_the_runbook_says",
    ),
    "a message of DispatchFailures passed on to dispatch": (
        "tests/stack/test_redrive.py::test_a_message_that_left_the_stream_is_passed_on_by_hand",
    ),
    "a range of RecordsFailures passed on to records": (
        "tests/stack/test_lost_table.py::test_traffic_goes_on_after_the_messages_table_was_lost",
    ),
    "bodies had back from their versions": (
        "tests/engine/store/test_s3_bodies.py::test_bodies_are_had_back_from_their_versions_as_the_runbook_says",
    ),
    "nights with and without a report": (
        "tests/engine/records/test_nights.py",
        "tests/template/test_report.py::test_a_quiet_night_counts_as_a_run_that_succeeded",
    ),
    "the report by hand, for other days, findings settled": (
        "tests/glue/test_job.py",
        "tests/paths/test_running_hub.py",
    ),
    "a first deployment, and one over a running stack": (
        "tests/sam/test_deploy.py::test_every_resource_of_the_template_arrived",
        "tests/stack/test_failures.py::test_changed_code_is_deployed_over_the_running_stack_and_waits_only_so_long",
    ),
    "parameters that add resources": (
        "tests/sam/test_deploy_chosen.py::test_every_resource_of_every_parameter_arrived",
    ),
    "make report-upload": (
        "tests/local/test_report_upload.py::test_it_goes_to_the_region_and_the_account_that_are_named",
    ),
    "pushhub deploy doctor": ("tests/operating/test_doctor.py::test_what_is_wrong_is_found",),
}
"""The tests that run a procedure, by what it is for."""


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_the_tests_of_a_procedure_exist(procedure: str) -> None:
    for each in PROCEDURES[procedure]:
        file, _, test = each.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {test}(" in text if test else "def test_" in text


def test_the_page_says_where_they_are_listed() -> None:
    assert "`tests/template/test_procedures.py`" in (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
