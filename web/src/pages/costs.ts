// What hooks cost in one cycle, beside what they cost on average. Pure.
import type { CycleRecord } from "../types";

export interface Cost {
  plugin: string;
  hook: string;
  seconds: number;
  mean: number;
}

export function costs(cycle: CycleRecord, cycles: CycleRecord[]): Cost[] {
  const sums = new Map<string, number>();
  for (const each of cycles) {
    for (const [plugin, hook, seconds] of each.spent ?? []) {
      const key = `${plugin}\n${hook}`;
      sums.set(key, (sums.get(key) ?? 0) + seconds);
    }
  }
  return (cycle.spent ?? []).map(([plugin, hook, seconds]) => ({
    plugin,
    hook,
    seconds,
    mean: (sums.get(`${plugin}\n${hook}`) ?? 0) / Math.max(1, cycles.length),
  }));
}
