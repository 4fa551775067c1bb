import assert from "node:assert/strict";
import { test } from "node:test";
import { changed, clusterOf } from "../src/store";
import type { GangRow, State } from "../src/types";

const gang = (name: string, state: string): GangRow => ({
  key: `podgang/default/${name}`,
  source: "podgang",
  namespace: "default",
  name,
  scheduler: "",
  queue: "",
  pods: 1,
  minimum: 1,
  placed: 0,
  ready: 0,
  state,
});

const STATE: State = {
  revision: "e-1",
  at: "t1",
  source: "here",
  unit: "GPU",
  levels: ["rack"],
  nodes: [{ name: "a" }, { name: "b" }],
  gangs: [gang("one", "pending"), gang("two", "running")],
  queues: [],
};

test("a change replaces rows, adds new ones and drops what is gone", () => {
  const after = changed(
    clusterOf(STATE),
    {
      at: "t2",
      nodes: [{ name: "c", cells: 8 }],
      goneNodes: ["a"],
      gangs: [gang("one", "running")],
      goneGangs: ["podgang/default/two"],
    },
    "e-2",
  );
  assert.deepEqual([...after.nodes.keys()], ["b", "c"]);
  assert.deepEqual(
    [...after.gangs.values()].map((row) => [row.name, row.state]),
    [["one", "running"]],
  );
  assert.equal(after.revision, "e-2");
  assert.deepEqual(after.levels, ["rack"]);
});
