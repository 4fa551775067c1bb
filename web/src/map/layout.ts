// Where everything lies on the map: racks hold nodes, blocks hold racks, and so on, as the levels say. Pure.
import type { NodeRow } from "../types";

/** A domain of some level, in units of a cell. */
export interface Box {
  name: string;
  /** Domains from the broadest level down to this one. */
  path: string[];
  depth: number;
  x: number;
  y: number;
  width: number;
  height: number;
  nodes: number[];
}

export interface Layout {
  width: number;
  height: number;
  boxes: Box[];
  /** The top left corner of each node, by its place in `names`. */
  x: Float64Array;
  y: Float64Array;
  columns: Int32Array;
  cells: Int32Array;
  names: string[];
}

const ROW = 8;
const GAP = { node: 0.4, box: 1.2, padding: 0.8, title: 1.8 };

interface Placed {
  width: number;
  height: number;
  place: (x: number, y: number) => void;
}

export function layOut(rows: NodeRow[], levels: number, aspect = 1.6): Layout {
  const size = rows.length;
  const layout: Layout = {
    width: 0,
    height: 0,
    boxes: [],
    x: new Float64Array(size),
    y: new Float64Array(size),
    columns: new Int32Array(size),
    cells: new Int32Array(size),
    names: rows.map((row) => row.name),
  };
  rows.forEach((row, place) => {
    layout.cells[place] = row.cells ?? 0;
    layout.columns[place] = Math.max(1, Math.min(row.cells ?? 0, ROW));
  });
  const all = rows.map((_, place) => place);
  const whole = domain(rows, all, 0, levels, [], aspect, layout);
  whole.place(0, 0);
  layout.width = whole.width;
  layout.height = whole.height;
  return layout;
}

function domain(
  rows: NodeRow[],
  members: number[],
  depth: number,
  levels: number,
  path: string[],
  aspect: number,
  layout: Layout,
): Placed {
  if (depth === levels)
    return packed(
      members.map((place) => nodeAt(place, layout)),
      GAP.node,
      1.2,
    );
  const groups = new Map<string, number[]>();
  for (const place of members) {
    const name = rows[place]!.path?.[depth] ?? "";
    const group = groups.get(name);
    if (group) group.push(place);
    else groups.set(name, [place]);
  }
  const names = [...groups.keys()].sort(natural);
  const boxes = names.map((name) => {
    const inside = groups.get(name)!;
    const below = [...path, name];
    return boxed(
      domain(rows, inside, depth + 1, levels, below, aspect, layout),
      below,
      depth,
      inside,
      layout,
    );
  });
  return packed(boxes, GAP.box, depth === 0 ? aspect : 1.6);
}

function nodeAt(place: number, layout: Layout): Placed {
  const columns = layout.columns[place]!;
  return {
    width: columns,
    height: Math.max(1, Math.ceil(layout.cells[place]! / columns)),
    place: (x, y) => {
      layout.x[place] = x;
      layout.y[place] = y;
    },
  };
}

function boxed(inner: Placed, path: string[], depth: number, nodes: number[], layout: Layout): Placed {
  const box: Box = {
    name: path[path.length - 1] ?? "",
    path,
    depth,
    x: 0,
    y: 0,
    width: inner.width + 2 * GAP.padding,
    height: inner.height + 2 * GAP.padding + GAP.title,
    nodes,
  };
  return {
    width: box.width,
    height: box.height,
    place: (x, y) => {
      box.x = x;
      box.y = y;
      layout.boxes.push(box);
      inner.place(x + GAP.padding, y + GAP.padding + GAP.title);
    },
  };
}

/** Puts things on shelves; of several widths the one is taken whose outcome is nearest to the wanted aspect. */
export function packed(things: Placed[], gap: number, aspect: number): Placed {
  const area = things.reduce((sum, each) => sum + (each.width + gap) * (each.height + gap), 0);
  const widest = things.reduce((most, each) => Math.max(most, each.width), 0);
  let best = shelved(things, gap, widest);
  for (let step = 0; step < WIDTHS; step++) {
    const limit = Math.max(widest, Math.sqrt(area * aspect) * (0.6 + (1.4 * step) / WIDTHS));
    const next = shelved(things, gap, limit);
    if (Math.max(next.width / aspect, next.height) < Math.max(best.width / aspect, best.height)) best = next;
  }
  return best;
}

const WIDTHS = 12;

function shelved(things: Placed[], gap: number, limit: number): Placed {
  const places: [number, number][] = [];
  let x = 0;
  let y = 0;
  let shelf = 0;
  let width = 0;
  for (const each of things) {
    if (x > 0 && x + each.width > limit + 1e-6) {
      y += shelf + gap;
      x = 0;
      shelf = 0;
    }
    places.push([x, y]);
    x += each.width + gap;
    width = Math.max(width, x - gap);
    shelf = Math.max(shelf, each.height);
  }
  return {
    width,
    height: y + shelf,
    place: (left, top) => {
      things.forEach((each, index) => {
        each.place(left + places[index]![0], top + places[index]![1]);
      });
    },
  };
}

/** Orders rack-2 before rack-10. One collator for all: `localeCompare` makes one for each comparison. */
export const natural = new Intl.Collator("en", { numeric: true }).compare;
