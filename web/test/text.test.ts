import assert from "node:assert/strict";
import { test } from "node:test";
import { age, clockTime, count, dayTime, duration, quantity, shortage } from "../src/format";
import { filtered } from "../src/pages/filter";
import { formatRoute, parseRoute } from "../src/route";
import type { GangRow } from "../src/types";

test("an address says what is chosen, and survives hostile names", () => {
  const key = "podgang/default/<script>&?#=%2F";
  const route = parseRoute(formatRoute("gang", { key, find: "" }));
  assert.deepEqual(route, { page: "gang", query: { key } });
});

test("an address that names no page shows the map", () => {
  for (const hash of ["", "#", "#/", "#/nowhere?x=1", "#javascript:alert(1)"])
    assert.equal(parseRoute(hash).page, "map");
});

test("times are said in their two largest units", () => {
  assert.equal(duration(0), "0s");
  assert.equal(duration(61), "1m 1s");
  assert.equal(duration(7200), "2h");
  assert.equal(duration(90_061), "1d 1h");
  assert.equal(age("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:00:05Z")), "5s");
});

test("a moment of another day is said with its day", () => {
  const moment = "2026-03-02T12:00:00Z";
  const time = clockTime(moment);
  assert.equal(dayTime(moment, Date.parse("2026-03-02T12:30:00Z")), time);
  const later = dayTime(moment, Date.parse("2026-03-05T12:30:00Z"));
  assert.ok(later.endsWith(time) && later.includes("2,") && !later.includes("2026"), later);
  assert.ok(dayTime(moment, Date.parse("2027-03-02T12:30:00Z")).includes("2026"));
});

test("amounts are said as people say them", () => {
  assert.equal(count(1, "gang"), "1 gang");
  assert.equal(count(2, "gang"), "2 gangs");
  assert.equal(shortage("nvidia.com/gpu", 8), "8 GPUs");
  assert.equal(shortage("cpu", 1500), "1.5 CPU");
  assert.equal(quantity("memory", "unlimited"), "unlimited");
});

test("gangs are filtered and ordered by what the address says", () => {
  const row = (name: string, state: string, gpus: number) =>
    ({ key: name, name, namespace: "default", state, queue: "q", scheduler: "s", pods: 1, gpus }) as GangRow;
  const gangs = [row("a-10", "running", 8), row("a-2", "pending", 16), row("b", "running", 4)];
  const names = (query: Record<string, string>) => filtered(gangs, query).map((gang) => gang.name);
  assert.deepEqual(names({}), ["a-2", "a-10", "b"]);
  assert.deepEqual(names({ state: "waiting" }), ["a-2"]);
  assert.deepEqual(names({ state: "running" }), ["a-10", "b"]);
  assert.deepEqual(names({ find: "A-" }), ["a-2", "a-10"]);
  assert.deepEqual(names({ sort: "gpus" }), ["a-2", "a-10", "b"]);
  assert.deepEqual(names({ sort: "-gpus" }), ["b", "a-10", "a-2"]);
  assert.deepEqual(names({ queue: "other" }), []);
});
