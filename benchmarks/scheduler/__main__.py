"""``python -m benchmarks.scheduler``: decisions alone, victims, then end to end beside the stock kube-scheduler."""

import runpy

for part in ("decisions", "victims", "end_to_end"):
    print(f"-- {part}")
    runpy.run_module(f"benchmarks.scheduler.{part}", run_name="__main__")
