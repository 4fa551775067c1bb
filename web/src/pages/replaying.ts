// A replay's timeline as the map shows it at one moment. Pure.
import type { NodeRow } from "../types";

export interface Figures {
  [name: string]: unknown;
  occupancy?: [number, number][];
  waiting?: [number, number][];
}

export interface Timeline {
  levels: string[];
  machines: [name: string, gpus: number, path: string[]][];
  jobs: [name: string, queue: string, gpus: number][];
  events: [at: number, what: string, job: number, machines: number[]][];
}

export interface Run {
  config: string;
  seed: number | null;
  figures: Figures;
  timeline?: Timeline;
}

export interface Report {
  trace: string;
  notes: string[];
  runs: Run[];
}

/** Returns a report from the text of a file; what is no report is refused with what was found. */
export function readReport(text: string): Report {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error("the file is not JSON; expected what `spinney replay TRACE -o json --timeline` prints");
  }
  const report = found as Partial<Report>;
  if (typeof report?.trace !== "string" || !Array.isArray(report.runs) || report.runs.length === 0) {
    throw new Error(
      "the file has no trace and runs; expected what `spinney replay TRACE -o json --timeline` prints",
    );
  }
  const odd = report.runs.findIndex(
    (run) => typeof run?.config !== "string" || !(run.figures instanceof Object),
  );
  if (odd >= 0) {
    throw new Error(
      `run ${odd + 1} of the file has no config and figures; expected what \`spinney replay TRACE -o json --timeline\` prints`,
    );
  }
  return { trace: report.trace, notes: report.notes ?? [], runs: report.runs };
}

/** Plays a timeline; going on is cheap, going back starts again. */
export class Player {
  private place = 0;
  private where = new Map<number, number[]>();
  private waits = new Set<number>();
  readonly begin: number;
  readonly end: number;

  constructor(private readonly timeline: Timeline) {
    const { events } = timeline;
    this.begin = events[0]?.[0] ?? 0;
    this.end = events[events.length - 1]?.[0] ?? 0;
  }

  /** Moves to a moment, in seconds since the trace began. */
  seek(at: number): void {
    const { events } = this.timeline;
    if (this.place > 0 && (events[this.place - 1]?.[0] ?? 0) > at) {
      this.place = 0;
      this.where.clear();
      this.waits.clear();
    }
    for (; this.place < events.length && events[this.place]![0] <= at; this.place++) {
      const [, what, job, machines] = events[this.place]!;
      if (what === "started") {
        this.where.set(job, machines ?? []);
        this.waits.delete(job);
      } else {
        this.where.delete(job);
        if (what === "submitted" || what === "evicted" || what === "failed") this.waits.add(job);
        else this.waits.delete(job);
      }
    }
  }

  get running(): number {
    return this.where.size;
  }

  get waiting(): number {
    return this.waits.size;
  }

  rows(): NodeRow[] {
    const held = new Map<number, Map<number, number>>();
    for (const [job, machines] of this.where) {
      for (const machine of machines) {
        const jobs = held.get(machine) ?? new Map<number, number>();
        jobs.set(job, (jobs.get(job) ?? 0) + this.timeline.jobs[job]![2]);
        held.set(machine, jobs);
      }
    }
    return this.timeline.machines.map(([name, gpus, path], place) => ({
      name,
      path,
      cells: gpus,
      held: [...(held.get(place) ?? [])].map(([job, cells]) => ({
        gang: this.timeline.jobs[job]![0],
        queue: this.timeline.jobs[job]![1],
        cells,
      })),
    }));
  }
}
