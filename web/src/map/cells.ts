// Which colour each cell has. Pure.
import { abgr, hueOf, mixed, type Palette } from "../colours";
import type { Held, NodeRow } from "../types";
import type { Layout } from "./layout";

export type ColourBy = "gang" | "queue" | "state";

export interface Cells {
  /** Where the cells of each node begin. */
  start: Int32Array;
  colours: Uint32Array;
}

/** Returns the colour of every cell; with `only`, what other gangs hold fades. */
export function coloured(
  rows: NodeRow[],
  layout: Layout,
  by: ColourBy,
  colours: Palette,
  only: string,
): Cells {
  const start = new Int32Array(rows.length + 1);
  rows.forEach((_, place) => {
    start[place + 1] = start[place]! + layout.cells[place]!;
  });
  const found = new Uint32Array(start[rows.length]!);
  const known = new Map<string, number>();
  const hue = (name: string) => {
    let colour = known.get(name);
    if (colour === undefined) {
      colour = name ? abgr(hueOf(name, colours.dark)) : colours.nobody;
      known.set(name, colour);
    }
    return colour;
  };
  rows.forEach((row, place) => {
    let cell = start[place]!;
    const end = start[place + 1]!;
    const idle =
      row.state === "failed" ? colours.failed : row.state === "cordoned" ? colours.cordoned : colours.free;
    for (const held of row.held ?? []) {
      let colour =
        by === "state" ? stateColour(held, colours) : hue((by === "gang" ? held.gang : held.queue) ?? "");
      if (held.reserved) colour = mixed(colour, colours.background, 0.55);
      if (row.state === "failed") colour = mixed(colour, colours.failed, 0.5);
      if (only && held.gang !== only) colour = mixed(colour, colours.background, 0.75);
      for (let left = held.cells ?? 0; left > 0 && cell < end; left--) found[cell++] = colour;
    }
    const fade = only ? mixed(idle, colours.background, 0.35) : idle;
    while (cell < end) found[cell++] = fade;
  });
  return { start, colours: found };
}

function stateColour(held: Held, colours: Palette): number {
  return held.gang ? abgr(colours.dark ? "#6ea3ff" : "#2f6fde") : colours.nobody;
}
