// Which gangs the table shows, and in which order. Pure.
import { natural } from "../map/layout";
import type { GangRow } from "../types";

/** The state to filter by that is two: what `waits` says. */
export const WAITING = "waiting";

/** Tells whether a gang waits: for its pods to be placed, or for its gates. */
export function waits(gang: GangRow): boolean {
  return gang.state === "pending" || gang.state === "gated";
}

export function filtered(gangs: Iterable<GangRow>, query: Record<string, string>): GangRow[] {
  const text = (query.find ?? "").toLowerCase();
  const wanted = [...gangs].filter(
    (gang) =>
      (!query.state || gang.state === query.state || (query.state === WAITING && waits(gang))) &&
      (!query.queue || gang.queue === query.queue) &&
      (!query.namespace || gang.namespace === query.namespace) &&
      (!text || `${gang.name} ${gang.workload ?? ""} ${gang.scheduler}`.toLowerCase().includes(text)),
  );
  const [name, backwards] = (query.sort ?? "").startsWith("-")
    ? [query.sort!.slice(1), -1]
    : [query.sort || "", 1];
  return wanted.sort(
    (a, b) =>
      backwards * compared(a, b, name) || natural(a.namespace, b.namespace) || natural(a.name, b.name),
  );
}

function compared(a: GangRow, b: GangRow, column: string): number {
  switch (column) {
    case "name":
    case "namespace":
    case "state":
    case "queue":
      return natural(a[column], b[column]);
    case "pods":
      return b.pods - a.pods;
    case "gpus":
      return (b.gpus ?? 0) - (a.gpus ?? 0);
    case "where":
      return natural(a.nodes?.[0] ?? "", b.nodes?.[0] ?? "");
    case "age":
      return natural(b.created ?? "", a.created ?? "");
    case "waits":
      return natural(a.waitingSince ?? "~", b.waitingSince ?? "~");
    default:
      return 0;
  }
}
