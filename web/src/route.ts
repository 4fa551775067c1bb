// The address of a page: its name, and what is chosen on it, so that a link shows what its sender saw.

export interface Route {
  page: string;
  query: Record<string, string>;
}

export const PAGES = ["map", "gangs", "queues", "what-if", "replay", "cycles"] as const;

export function parseRoute(hash: string): Route {
  const [name = "", text = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const page = name === "gang" || (PAGES as readonly string[]).includes(name) ? name : "map";
  return { page, query: Object.fromEntries(new URLSearchParams(text)) };
}

export function formatRoute(page: string, query: Record<string, string | undefined> = {}): string {
  const filled = Object.entries(query).filter((pair): pair is [string, string] => Boolean(pair[1]));
  const text = new URLSearchParams(filled).toString();
  return `#/${page}${text ? `?${text}` : ""}`;
}
