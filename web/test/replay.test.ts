import assert from "node:assert/strict";
import { test } from "node:test";
import { costs } from "../src/pages/costs";
import { Player, readReport, type Timeline } from "../src/pages/replaying";
import type { CycleRecord } from "../src/types";

const TIMELINE: Timeline = {
  levels: [],
  machines: [
    ["a", 8, []],
    ["b", 8, []],
  ],
  jobs: [
    ["one", "q", 4],
    ["two", "q", 8],
  ],
  events: [
    [0, "submitted", 0, []],
    [1, "started", 0, [0, 1]],
    [2, "submitted", 1, []],
    [5, "ended", 0, []],
    [6, "started", 1, [1]],
    [7, "evicted", 1, []],
  ],
};

const held = (player: Player) =>
  player.rows().map((row) => (row.held ?? []).map((each) => `${each.gang}:${each.cells}`));

test("a moment shows who runs where, whichever way it was reached", () => {
  const player = new Player(TIMELINE);
  const moments = [0, 1, 2, 5, 6, 7];
  const forward = moments.map((at) => {
    player.seek(at);
    return [held(player), player.running, player.waiting];
  });
  assert.deepEqual(forward[1], [[["one:4"], ["one:4"]], 1, 0]);
  assert.deepEqual(forward[4], [[[], ["two:8"]], 1, 0]);
  assert.deepEqual(forward[5], [[[], []], 0, 1]);
  const backward = [...moments].reverse().map((at) => {
    player.seek(at);
    return [held(player), player.running, player.waiting];
  });
  assert.deepEqual(backward.reverse(), forward);
});

test("a file that is no report is refused", () => {
  for (const text of [
    "",
    "[]",
    "{}",
    '{"trace": 1, "runs": []}',
    '{"trace": "x", "runs": []}',
    '{"trace": "x", "runs": [{"config": "c"}]}',
    "null",
  ]) {
    assert.throws(() => readReport(text), /spinney replay/);
  }
  assert.equal(
    readReport('{"trace": "x", "runs": [{"config": "c", "seed": null, "figures": {}}]}').runs.length,
    1,
  );
});

test("costs stand beside their mean over all cycles", () => {
  const cycle = (spent: [string, string, number][]) => ({ spent }) as CycleRecord;
  const cycles = [cycle([["action", "allocate", 0.1]]), cycle([["action", "allocate", 0.3]])];
  assert.deepEqual(costs(cycles[1]!, cycles), [
    { plugin: "action", hook: "allocate", seconds: 0.3, mean: 0.2 },
  ]);
});
