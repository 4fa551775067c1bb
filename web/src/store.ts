// The cluster as the page knows it: the state that was read, changed by the events that came since.
import type { Delta, GangRow, NodeRow, QueueRow, State, Unseen } from "./types";

export interface Cluster {
  revision: string;
  at: string;
  source: string;
  unit: string;
  levels: string[];
  nodes: Map<string, NodeRow>;
  gangs: Map<string, GangRow>;
  queues: QueueRow[];
  unseen: Unseen[];
  namespaces: string[] | null;
  /** Why what is shown may be out of date; empty if it is not. */
  trouble: string;
}

export function clusterOf(state: State): Cluster {
  return {
    revision: state.revision,
    at: state.at,
    source: state.source,
    unit: state.unit,
    levels: state.levels,
    nodes: new Map(state.nodes.map((row) => [row.name, row])),
    gangs: new Map(state.gangs.map((row) => [row.key, row])),
    queues: state.queues,
    unseen: state.unseen ?? [],
    namespaces: state.namespaces ?? null,
    trouble: state.trouble ?? "",
  };
}

/** Returns the cluster after a change; the maps are changed in place, for they are large. */
export function changed(cluster: Cluster, delta: Delta, revision: string): Cluster {
  for (const name of delta.goneNodes ?? []) cluster.nodes.delete(name);
  for (const key of delta.goneGangs ?? []) cluster.gangs.delete(key);
  for (const row of delta.nodes ?? []) cluster.nodes.set(row.name, row);
  for (const row of delta.gangs ?? []) cluster.gangs.set(row.key, row);
  return {
    ...cluster,
    revision,
    at: delta.at,
    queues: delta.queues ?? cluster.queues,
    levels: delta.levels ?? cluster.levels,
    trouble: delta.trouble ?? cluster.trouble,
  };
}

/** Tells whether the viewer may not list all of one of these kinds, called as in a role: `queues.scheduling.run.ai`. */
export function hides(cluster: Cluster, ...kinds: string[]): boolean {
  return cluster.unseen.some((each) => kinds.includes(each.what));
}

export type Connection = "connecting" | "live" | "broken" | "token" | "refused";

export interface Snapshot {
  cluster: Cluster | null;
  connection: Connection;
  problem: string;
}

/** Holds the newest snapshot and tells those who show it. */
export class Store {
  private told = new Set<() => void>();
  current: Snapshot = { cluster: null, connection: "connecting", problem: "" };

  update(change: Partial<Snapshot>): void {
    this.current = { ...this.current, ...change };
    for (const tell of this.told) tell();
  }

  subscribe(tell: () => void): () => void {
    this.told.add(tell);
    return () => this.told.delete(tell);
  }
}
