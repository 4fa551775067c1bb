// Talking to the dashboard's own API. The token is kept in memory only: closing or reloading the page forgets it.
import { EventParser } from "./sse";
import { changed, clusterOf, type Store } from "./store";
import type { About, Cycles, Delta, GangPage, Sample, State, WhatIfAnswer, WhyAnswer } from "./types";

export class Failure extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const RETRY = { first: 500, longest: 10_000 };
/** Silence after which a connection counts as broken; the server says something every 15 seconds. */
const SILENCE = 40_000;
/** How often a hidden page says that it is there: the server closes what nobody looks at after five minutes. */
const PRESENCE = 120_000;

const SAME_TIME = 3_000;

export class Api {
  private token = "";
  private namespaces = "";
  /** By how many milliseconds the browser's clock is behind the server's; answers tell seconds, so a few do not count. */
  private behind = 0;

  /** The time, as the dashboard's server has it: what it tells of the cluster is in its time. */
  now = (): number => Date.now() + (Math.abs(this.behind) > SAME_TIME ? this.behind : 0);

  use(token: string, namespaces: string): void {
    this.token = token.trim();
    this.namespaces = namespaces.trim();
  }

  about = (): Promise<About> => this.json("api/about");
  state = (): Promise<State> => this.json("api/state");
  gang = (key: string): Promise<GangPage> => this.json(`api/gangs/${path(key)}`);
  why = (key: string): Promise<WhyAnswer> => this.json(`api/gangs/${path(key)}/why`);
  queueHistory = (queue: string, hours: string): Promise<Record<string, Sample[]>> =>
    this.json(`api/queues/history?${new URLSearchParams({ queue, ...(hours ? { hours } : {}) })}`);
  cycles = (after: number): Promise<Cycles[]> =>
    this.json(`api/cycles?${new URLSearchParams({ after: `${after}` })}`);
  /** Asks for the little that keeps what the server has seen for this viewer. */
  present = (): Promise<unknown> => this.queueHistory("", "");

  async objects(key: string): Promise<string> {
    return (await this.fetched(`api/gangs/${path(key)}/objects`)).text();
  }

  whatIf(manifests: string, namespace: string): Promise<WhatIfAnswer> {
    const body = JSON.stringify({ manifests, namespace });
    return this.json("api/what-if", {
      method: "POST",
      body,
      headers: { "content-type": "application/json" },
    });
  }

  async json<T>(url: string, init: RequestInit = {}): Promise<T> {
    return (await this.fetched(url, init)).json() as Promise<T>;
  }

  async fetched(url: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(url, { ...init, headers: { ...this.headers(), ...init.headers } });
    const sent = Date.parse(response.headers.get("date") ?? "");
    if (Number.isFinite(sent)) this.behind = sent - Date.now();
    if (!response.ok) {
      const body = (await response.json().catch(() => ({}))) as { error?: string };
      throw new Failure(response.status, body.error ?? `the dashboard answered ${response.status}`);
    }
    return response;
  }

  private headers(): Record<string, string> {
    return {
      ...(this.token ? { authorization: `Bearer ${this.token}` } : {}),
      ...(this.namespaces ? { "x-spinney-namespaces": this.namespaces } : {}),
    };
  }
}

/** Returns a gang's key as a part of an address; names come from the cluster and may hold anything. */
function path(key: string): string {
  return key.split("/").map(encodeURIComponent).join("/");
}

/**
 * Keeps the store up to date until it is stopped: reads the state, then follows events, and resumes after a break.
 *
 * A browser has few connections for each server, and every stream takes one: a page that is hidden lets go of its own,
 * and goes on where it was when it is seen again. Until then it says now and then that it is there.
 */
export class Follower {
  private stopped = new AbortController();
  private delay = RETRY.first;
  /** Whether the state was read and every change since is known; what is shown stays until the next one is there. */
  private upToDate = false;

  constructor(
    private readonly api: Api,
    private readonly store: Store,
  ) {}

  stop(): void {
    this.stopped.abort();
  }

  async run(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      try {
        if (!this.upToDate) {
          this.store.update({ cluster: clusterOf(await this.api.state()) });
          this.upToDate = true;
        }
        await this.untilSeen();
        await this.follow();
      } catch (error) {
        if (this.stopped.signal.aborted) return;
        const status = error instanceof Failure ? error.status : 0;
        const connection = status === 401 ? "token" : status === 403 || status === 421 ? "refused" : "broken";
        this.store.update({ connection, problem: String((error as Error).message) });
        if (status === 401) {
          this.store.update({ cluster: null });
          return;
        }
      }
      await new Promise((done) => setTimeout(done, this.delay * (0.75 + Math.random() / 2)));
      this.delay = Math.min(this.delay * 2, RETRY.longest);
    }
  }

  private async follow(): Promise<void> {
    const { cluster } = this.store.current;
    const silent = new AbortController();
    const hidden = new AbortController();
    const hide = () => document.hidden && hidden.abort();
    let timer = setTimeout(() => silent.abort(), SILENCE);
    document.addEventListener("visibilitychange", hide);
    try {
      const response = await this.api.fetched("api/events", {
        headers: { "last-event-id": cluster?.revision ?? "" },
        signal: AbortSignal.any([this.stopped.signal, silent.signal, hidden.signal]),
      });
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser();
      this.store.update({ connection: "live", problem: "" });
      this.delay = RETRY.first;
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), SILENCE);
        for (const event of parser.push(value)) {
          if (event.event === "reset") {
            this.upToDate = false;
            return;
          }
          const known = this.store.current.cluster;
          if (known)
            this.store.update({ cluster: changed(known, JSON.parse(event.data) as Delta, event.id) });
        }
      }
    } catch (error) {
      if (!hidden.signal.aborted) throw error;
    } finally {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", hide);
      if (hidden.signal.aborted || !this.upToDate) {
        this.store.update({ connection: "connecting", problem: "" });
      } else if (!this.stopped.signal.aborted && this.store.current.connection === "live") {
        this.store.update({ connection: "broken", problem: "the connection to the dashboard broke" });
      }
    }
  }

  /** Resolves when somebody can see the page: at once, or when its tab is chosen. */
  private async untilSeen(): Promise<void> {
    while (document.hidden && !this.stopped.signal.aborted) {
      await new Promise<void>((done) => {
        const end = () => {
          clearTimeout(timer);
          document.removeEventListener("visibilitychange", end);
          done();
        };
        const timer = setTimeout(end, PRESENCE);
        document.addEventListener("visibilitychange", end);
      });
      if (document.hidden) await this.api.present();
    }
  }
}
