import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser } from "../src/sse";

const TEXT =
  'retry: 1000\n\nid: e-1\nevent: change\ndata: {"at":1}\n\n: still here\n\nevent: reset\ndata: {}\n\n';

test("events are the same however the text is cut", () => {
  for (let step = 1; step <= TEXT.length; step++) {
    const parser = new EventParser();
    const events = [];
    for (let place = 0; place < TEXT.length; place += step)
      events.push(...parser.push(TEXT.slice(place, place + step)));
    assert.deepEqual(events, [
      { id: "e-1", event: "change", data: '{"at":1}' },
      { id: "", event: "reset", data: "{}" },
    ]);
  }
});

test("an event that is not complete is kept back", () => {
  const parser = new EventParser();
  assert.deepEqual(parser.push("event: change\ndata: {}\n"), []);
  assert.equal(parser.push("\n").length, 1);
});
