// What components share: the store, the time, the colour scheme, an answer that is being fetched.
import { createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { Api } from "./api";
import { type Snapshot, Store } from "./store";

export const store = new Store();
export const api = new Api();

export function useStore(): Snapshot {
  const [, again] = useReducer((count: number, _: undefined) => count + 1, 0);
  useEffect(() => store.subscribe(() => again(undefined)), []);
  return store.current;
}

/** The server's time, a new one every so many milliseconds while somebody can see the page. */
export function useNow(every = 1000): number {
  const [now, tell] = useState(api.now());
  useEffect(() => {
    const look = () => document.hidden || tell(api.now());
    const timer = setInterval(look, every);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [every]);
  return now;
}

export function useDark(): boolean {
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  const [dark, tell] = useState(query.matches);
  useEffect(() => {
    const change = () => tell(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  });
  return dark;
}

/** Brings the reader to a page that opens: to its beginning, or on the way back to where they were in it. */
export function useArrival(place: string): void {
  const before = useRef(place);
  useEffect(() => {
    const keep = () => history.replaceState({ y: window.scrollY }, "");
    history.scrollRestoration = "manual";
    document.addEventListener("click", keep, { capture: true }); // of a link, before it leads away
    return () => document.removeEventListener("click", keep, { capture: true });
  }, []);
  useLayoutEffect(() => {
    if (before.current === place) return;
    before.current = place;
    document.getElementById("content")?.focus({ preventScroll: true });
    window.scrollTo(0, (history.state as { y?: number } | null)?.y ?? 0);
  }, [place]);
}

const kept = new Map<string, unknown>();

/** State that outlives its page, until the browser's page is closed: who looks at another page comes back to it. */
export function useKept<T>(name: string, begin: T): [T, (value: T) => void] {
  const [value, tell] = useState<T>(() => (kept.has(name) ? (kept.get(name) as T) : begin));
  return [
    value,
    (next) => {
      kept.set(name, next);
      tell(next);
    },
  ];
}

/** Forgets what was kept by this name: it was told to somebody else. */
export function forget(name: string): void {
  kept.delete(name);
}

export interface Fetched<T> {
  value: T | null;
  problem: string;
  busy: boolean;
}

/**
 * Fetches when `subject` or `version` changes, and after a break what could not be fetched before.
 *
 * The last answer stays while the next one about the same subject is on its way.
 */
export function useFetched<T>(subject: string, version: string, fetch: () => Promise<T>): Fetched<T> {
  const nothing = { subject, value: null, problem: "", busy: true };
  const [told, tell] = useState<Fetched<T> & { subject: string }>(nothing);
  const fetched = told.subject === subject ? told : nothing;
  const [attempt, tryAgain] = useState(0);
  const live = useStore().connection === "live";
  useEffect(() => {
    if (live && fetched.problem) tryAgain(attempt + 1);
  }, [live]);
  useEffect(() => {
    let left = false;
    tell({ ...fetched, busy: true });
    fetch().then(
      (value) => left || tell({ subject, value, problem: "", busy: false }),
      (error: Error) => left || tell({ ...fetched, problem: error.message, busy: false }),
    );
    return () => {
      left = true;
    };
  }, [subject, version, attempt]);
  return fetched;
}

export const Navigation = createContext<{
  query: Record<string, string>;
  go: (change: Record<string, string>) => void;
}>({
  query: {},
  go: () => undefined,
});

export const useNavigation = () => useContext(Navigation);
