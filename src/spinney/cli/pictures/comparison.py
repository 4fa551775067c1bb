"""What a scheduler that only watched would have done, beside what another did."""

import statistics
from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spinney.cli.terminal.printable import printable
from spinney.explain.amounts import counted
from spinney.scheduler.process.shadow import Comparison, Shadow

_SHOWN = 50


def print_comparison(console: Console, shadow: Shadow) -> None:
    """Say how a shadow and the scheduler beside it compare."""
    found = shadow.compared()
    counts = Counter(each.difference for each in found)
    summary = Table(title=f"{counted(len(found), 'pod')} placed by either scheduler", title_justify="left")
    summary.add_column("")
    summary.add_column("pods", justify="right")
    for difference in Comparison:
        summary.add_row(difference.value, str(counts[difference]))
    console.print(summary)
    leads = [each.lead for each in found if each.lead is not None]
    if leads:
        console.print(f"decided {statistics.median(leads):+.2f} s (median) before the other's bind was seen")
    if shadow.evictions:
        console.print(f"would have evicted {counted(shadow.evictions, 'pod')}")
    for gang, message in sorted(shadow.refused.items()):
        console.print(printable(f"could not place {gang}: {message}"), markup=False)
    apart = [each for each in found if each.difference is not Comparison.SAME]
    if apart:
        table = Table(title="where the two differ", title_justify="left")
        for column in ("pod", "gang", "ours", "the other's"):
            table.add_column(column)
        for each in apart[:_SHOWN]:
            cells = (str(each.pod), each.gang, each.ours or "-", each.theirs or "-")
            table.add_row(*(Text(printable(cell)) for cell in cells))
        console.print(table)
        if len(apart) > _SHOWN:
            console.print(f"... and {len(apart) - _SHOWN} more; the log has every decision")
