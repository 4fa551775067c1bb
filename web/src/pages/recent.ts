// Cycles as they come: those that are known are not fetched again.
import type { Cycles } from "../types";

/** How many cycles of each scheduler are shown: as many as a scheduler keeps. */
const KEPT = 200;

/** The cycles of now; asked is what came after what is known, and everything where that does not join. */
export async function recent(known: Cycles[], ask: (after: number) => Promise<Cycles[]>): Promise<Cycles[]> {
  const after = askedAfter(known);
  const told = await ask(after);
  return after === 0 ? told : (joined(known, told) ?? (await ask(0)));
}

/** The cycle to ask after: the last that is known comes again, which shows that its scheduler is still the same. */
function askedAfter(known: Cycles[]): number {
  const last = known.map((each) => each.cycles?.at(-1)?.number ?? 1);
  return last.length > 0 ? Math.min(...last) - 1 : 0;
}

/** What is known, with what was told since; null where these do not join, as after a scheduler's restart. */
function joined(known: Cycles[], told: Cycles[]): Cycles[] | null {
  const found: Cycles[] = [];
  for (const each of told) {
    const before = known.find((one) => one.scheduler === each.scheduler)?.cycles ?? [];
    const since = each.cycles ?? [];
    const last = before.at(-1);
    const place = since.findIndex((cycle) => cycle.number === last?.number && cycle.at === last.at);
    if (place < 0 && !each.problem) return null;
    found.push({ ...each, cycles: [...before, ...since.slice(place + 1)].slice(-KEPT) });
  }
  return found;
}
