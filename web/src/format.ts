// Times and amounts as people read them.

const STEPS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "m"],
  [1, "s"],
];

/** Returns a span of time in its two largest units, such as 2h 5m. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const place = STEPS.findIndex(([step]) => whole >= step);
  if (place < 0) return "0s";
  const [step, unit] = STEPS[place]!;
  const next = STEPS[place + 1];
  const rest = next ? Math.floor((whole % step) / next[0]) : 0;
  return `${Math.floor(whole / step)}${unit}${rest ? ` ${rest}${next![1]}` : ""}`;
}

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;

export function age(moment: string | undefined, now: number): string {
  return moment ? duration((now - Date.parse(moment)) / 1000) : "";
}

export function clockTime(moment: string | number): string {
  return new Date(moment).toLocaleTimeString([], CLOCK);
}

/** Returns when something was: the time of a moment of today, else its day, too. */
export function dayTime(moment: string, now: number): string {
  const [at, today] = [new Date(moment), new Date(now)];
  if (at.toDateString() === today.toDateString()) return clockTime(moment);
  const year = at.getFullYear() === today.getFullYear() ? {} : ({ year: "numeric" } as const);
  return at.toLocaleString([], { ...year, month: "short", day: "numeric", ...CLOCK });
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

const SHORT: Record<string, string> = { "nvidia.com/gpu": "GPU", cpu: "CPU", memory: "memory" };

/** Returns a resource as people call it. */
export function resource(name: string): string {
  return SHORT[name] ?? name;
}

/** Returns what a domain lacks: amounts are in the units of the scheduler's books. */
export function shortage(name: string, amount: number): string {
  if (name === "cpu") return `${(amount / 1000).toLocaleString("en")} CPU`;
  if (name === "memory") return `${(amount / 2 ** 30).toFixed(1)} GiB memory`;
  return `${amount.toLocaleString("en")} ${resource(name)}${name.endsWith("gpu") && amount !== 1 ? "s" : ""}`;
}

/** Returns a quantity of a queue's share: memory in GiB, the rest as it is. */
export function quantity(name: string, text: string): string {
  if (text === "unlimited" || name !== "memory") return text;
  return `${(Number(text) / 2 ** 30).toFixed(0)}Gi`;
}
