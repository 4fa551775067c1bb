import assert from "node:assert/strict";
import { test } from "node:test";
import { recent } from "../src/pages/recent";
import type { CycleRecord, Cycles } from "../src/types";

/** The cycles of a process from one to another; begun tells processes apart. */
const run = (from: number, to: number, begun = "a"): CycleRecord[] =>
  Array.from({ length: to - from + 1 }, (_, place) => ({
    number: from + place,
    at: `${begun}${from + place}`,
    seconds: 0,
    pending: 0,
    binds: 0,
    evictions: 0,
    unschedulable: 0,
  }));

/** Asks a server with these cycles for those after each that is known; gives them, and how many came over the wire. */
async function asked(known: Cycles[], server: Cycles[]): Promise<[(number | undefined)[][], number]> {
  let sent = 0;
  const found = await recent(known, async (after) => {
    const told = server.map((each) => ({
      ...each,
      cycles: each.cycles?.filter((one) => one.number > after),
    }));
    sent += told.reduce((sum, each) => sum + (each.cycles?.length ?? 0), 0);
    return told;
  });
  return [found.map((each) => [each.cycles?.[0]?.number, each.cycles?.at(-1)?.number]), sent];
}

const one = (cycles: CycleRecord[], problem = ""): Cycles => ({ scheduler: "one", cycles, problem });
const two = (cycles: CycleRecord[]): Cycles => ({ scheduler: "two", cycles });

test("at first all cycles are fetched, then those that are new and one that shows that they join", async () => {
  assert.deepEqual(await asked([], [one(run(301, 500))]), [[[301, 500]], 200]);
  assert.deepEqual(await asked([one(run(301, 500))], [one(run(301, 500))]), [[[301, 500]], 1]);
  assert.deepEqual(await asked([one(run(301, 500))], [one(run(304, 503))]), [[[304, 503]], 4]);
});

test("after a restart of the scheduler, and after more cycles than are kept, all are fetched", async () => {
  assert.deepEqual(await asked([one(run(1, 9))], [one(run(1, 2, "b"))]), [[[1, 2]], 2]);
  assert.deepEqual(await asked([one(run(1, 9))], [one(run(1, 20, "b"))]), [[[1, 20]], 12 + 20]);
  assert.deepEqual(await asked([one(run(1, 200))], [one(run(301, 500))]), [[[301, 500]], 400]);
});

test("each of several schedulers has all of its cycles, also its first ones", async () => {
  const known = [one(run(301, 500)), two(run(1, 3))];
  assert.deepEqual(await asked(known, [one(run(301, 500)), two(run(1, 4))]), [
    [
      [301, 500],
      [1, 4],
    ],
    202,
  ]);
  const silent = [one(run(301, 500)), two([])];
  assert.deepEqual((await asked(silent, [one(run(301, 500)), two(run(1, 1))]))[0], [
    [301, 500],
    [1, 1],
  ]);
});

test("what is known of a scheduler stays while it cannot be asked", async () => {
  assert.deepEqual((await asked([one(run(1, 9))], [one([], "gone")]))[0], [[1, 9]]);
});
