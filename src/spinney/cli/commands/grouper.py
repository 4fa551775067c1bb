"""``spinney grouper``: make gangs of the pods of any workload, or check the rules by which it does."""

import click

from spinney.cli.options import configuration_options, process_options, with_body


@click.command()
@configuration_options(config=": rules of your own, scheduler names, fallback", check="and print the rules in force")
@click.option("--rights", is_flag=True, help="Only print the ClusterRole that the enabled rules and profiles need.")
@process_options(leading="Write")
@with_body
def grouper() -> None:
    """Make gangs of the pods of any workload: Jobs, JobSets, LeaderWorkerSets, Ray, Kubeflow, Spark and your own kinds.

    Without a configuration pods of spinney-scheduler are grouped by the built-in rules. Switch on waitForGrouper in the
    scheduler's configuration, so that no pod starts before its gang is known.
    """
