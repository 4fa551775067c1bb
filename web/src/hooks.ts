// What components share: the store, the time, the colour scheme, an answer that is being fetched.
import { createContext } from "preact";
import { useContext, useEffect, useReducer, useState } from "preact/hooks";
import { Api } from "./api";
import { type Snapshot, Store } from "./store";

export const store = new Store();
export const api = new Api();

export function useStore(): Snapshot {
  const [, again] = useReducer((count: number, _: undefined) => count + 1, 0);
  useEffect(() => store.subscribe(() => again(undefined)), []);
  return store.current;
}

/** The time, a new one every so many milliseconds. */
export function useNow(every = 1000): number {
  const [now, tell] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => tell(Date.now()), every);
    return () => clearInterval(timer);
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

export interface Fetched<T> {
  value: T | null;
  problem: string;
  busy: boolean;
}

/** Fetches when `key` changes, and keeps the last answer while the next one is on its way. */
export function useFetched<T>(key: string, fetch: () => Promise<T>): Fetched<T> {
  const [fetched, tell] = useState<Fetched<T>>({ value: null, problem: "", busy: true });
  useEffect(() => {
    let left = false;
    tell((before) => ({ ...before, busy: true }));
    fetch().then(
      (value) => left || tell({ value, problem: "", busy: false }),
      (error: Error) => left || tell((before) => ({ ...before, problem: error.message, busy: false })),
    );
    return () => {
      left = true;
    };
  }, [key]);
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
