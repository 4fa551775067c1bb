// Colours of cells. Gangs are told apart by hue; hovering, the legend and the tables say in words what a colour says.

/** Twelve hues that stay apart for most kinds of colour blindness, in light and dark. */
const HUES: [string, string][] = [
  ["#2f6fde", "#6ea3ff"],
  ["#d2691e", "#f0995a"],
  ["#2e8b57", "#5cc48a"],
  ["#9b4dca", "#c48aec"],
  ["#c2255c", "#f06a98"],
  ["#0f8b8d", "#4fc4c6"],
  ["#8a6d1b", "#d1b04e"],
  ["#5f6caf", "#98a4e6"],
  ["#6b8e23", "#a3c65a"],
  ["#a0522d", "#d08a64"],
  ["#7a3b8f", "#b77ecb"],
  ["#3d7a9e", "#79b5d9"],
];

export interface Palette {
  free: number;
  cordoned: number;
  failed: number;
  nobody: number;
  background: number;
  dark: boolean;
}

export function palette(dark: boolean): Palette {
  return dark
    ? {
        free: abgr("#2f3a45"),
        cordoned: abgr("#7a6420"),
        failed: abgr("#8f3434"),
        nobody: abgr("#8d99a6"),
        background: abgr("#11161c"),
        dark,
      }
    : {
        free: abgr("#dfe4ea"),
        cordoned: abgr("#e3c565"),
        failed: abgr("#d98080"),
        nobody: abgr("#7b8794"),
        background: abgr("#fbfcfd"),
        dark,
      };
}

/** Returns a number that stays the same for a name, so that a gang keeps its colour. */
export function hash(text: string): number {
  let value = 2166136261;
  for (let place = 0; place < text.length; place++)
    value = Math.imul(value ^ text.charCodeAt(place), 16777619);
  return value >>> 0;
}

const given = new Map<string, number>();
const uses = new Array<number>(HUES.length).fill(0);

/** Returns the colour of a name: the one its letters ask for, or the next if many others have that already. */
export function hueOf(name: string, dark: boolean): string {
  let place = given.get(name);
  if (place === undefined) {
    place = hash(name) % HUES.length;
    const least = Math.min(...uses);
    while (uses[place]! > least) place = (place + 1) % HUES.length;
    uses[place]!++;
    given.set(name, place);
  }
  return HUES[place]![dark ? 1 : 0];
}

/** Returns a colour as the pixels of a canvas hold it on a little-endian machine. */
export function abgr(hex: string): number {
  const value = Number.parseInt(hex.slice(1), 16);
  return ((255 << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/** Mixes two colours; 0 is all of the first. */
export function mixed(one: number, other: number, part: number): number {
  const mix = (shift: number) =>
    Math.round(((one >> shift) & 255) * (1 - part) + ((other >> shift) & 255) * part) << shift;
  return ((255 << 24) | mix(16) | mix(8) | mix(0)) >>> 0;
}
