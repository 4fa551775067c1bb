import assert from "node:assert/strict";
import { test } from "node:test";
import { palette } from "../src/colours";
import { coloured } from "../src/map/cells";
import { layOut, natural } from "../src/map/layout";
import { KEPT, measured } from "../src/map/measuring";
import { fitted, nearest, nodeAt, paint, zoomed } from "../src/map/raster";
import type { NodeRow } from "../src/types";

function cluster(nodes: number): NodeRow[] {
  return Array.from({ length: nodes }, (_, place) => ({
    name: `n-${place}`,
    cells: 8,
    path: [`block-${Math.floor(place / 16)}`, `rack-${Math.floor(place / 4)}`],
  }));
}

test("no two nodes overlap, and each lies inside its rack and block", () => {
  const rows = cluster(64);
  const layout = layOut(rows, 2);
  const seen = new Set<string>();
  for (let node = 0; node < rows.length; node++) {
    for (let cell = 0; cell < 8; cell++) {
      const spot = `${(layout.x[node]! + cell).toFixed(3)},${layout.y[node]!.toFixed(3)}`;
      assert.ok(!seen.has(spot));
      seen.add(spot);
    }
  }
  assert.equal(layout.boxes.length, 4 + 16);
  for (const box of layout.boxes) {
    for (const node of box.nodes) {
      assert.ok(layout.x[node]! >= box.x && layout.x[node]! + 8 <= box.x + box.width);
      assert.ok(layout.y[node]! >= box.y && layout.y[node]! + 1 <= box.y + box.height);
    }
  }
});

test("the map fills a wide window better than a tower would", () => {
  const layout = layOut(cluster(64), 2, 1.6);
  assert.ok(layout.width / layout.height > 0.8 && layout.width / layout.height < 3.2);
});

test("a node without labels has a place, too", () => {
  const layout = layOut([{ name: "lone", cells: 0 }, ...cluster(2)], 2);
  assert.equal(layout.names.length, 3);
  assert.ok(layout.width > 0);
});

test("cells show who holds them, what is reserved, and what is cordoned", () => {
  const rows: NodeRow[] = [
    {
      name: "a",
      cells: 4,
      held: [
        { gang: "g", queue: "q", cells: 2 },
        { gang: "h", cells: 1, reserved: true },
      ],
    },
    { name: "b", cells: 1, state: "cordoned" },
    { name: "c", cells: 1, held: [{ gang: "g", cells: 9 }] },
  ];
  const colours = palette(false);
  const { colours: found, start } = coloured(rows, layOut(rows, 0), "gang", colours, "");
  assert.deepEqual([...start], [0, 4, 5, 6]);
  assert.equal(found[0], found[1]);
  assert.notEqual(found[1], found[2]);
  assert.equal(found[3], colours.free);
  assert.equal(found[4], colours.cordoned);
  assert.equal(found[5], found[0]);
});

test("what is painted is found again under the pointer", () => {
  const rows = cluster(32);
  const layout = layOut(rows, 2);
  const cells = coloured(rows, layout, "gang", palette(false), "");
  const camera = fitted(layout, 800, 500);
  const pixels = new Uint32Array(800 * 500);
  paint(pixels, 800, 500, layout, cells, camera, 1);
  const free = palette(false).free;
  assert.ok(pixels.some((pixel) => pixel === free));
  for (let node = 0; node < rows.length; node++) {
    const x = (layout.x[node]! + 0.4 - camera.x) * camera.scale;
    const y = (layout.y[node]! + 0.4 - camera.y) * camera.scale;
    assert.equal(nodeAt(layout, camera, x, y), node);
    assert.equal(pixels[Math.round(y) * 800 + Math.round(x)], free);
  }
});

test("zooming keeps what is under the pointer there", () => {
  const camera = { scale: 3, x: 10, y: 20 };
  const after = zoomed(camera, 2, 100, 50);
  assert.ok(Math.abs(camera.x + 100 / camera.scale - (after.x + 100 / after.scale)) < 1e-9);
  assert.ok(Math.abs(camera.y + 50 / camera.scale - (after.y + 50 / after.scale)) < 1e-9);
});

test("rack-2 comes before rack-10", () => {
  assert.deepEqual(["rack-10", "rack-2"].sort(natural), ["rack-2", "rack-10"]);
});

test("of the times that drawings took the last ones are kept", () => {
  for (let drawing = 0; drawing < 2.5 * KEPT; drawing++) measured(performance.now());
  const kept = performance.getEntriesByName("map-draw").length;
  assert.ok(kept > 0 && kept <= KEPT, `${kept}`);
});

test("the node nearest to a point is found, also between nodes", () => {
  const layout = layOut(cluster(4), 0);
  const camera = fitted(layout, 400, 300);
  for (let node = 0; node < 4; node++) {
    const [x, y] = [(layout.x[node]! - camera.x) * camera.scale, (layout.y[node]! - camera.y) * camera.scale];
    assert.equal(nearest(layout, camera, x + 1, y + 1), node);
    assert.equal(nearest(layout, camera, x + 1, y - 1), node);
  }
  assert.equal(nearest(layOut([], 0), camera, 0, 0), -1);
});
