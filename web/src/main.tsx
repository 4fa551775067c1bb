// The page: what is chosen in the address decides what is shown; the store keeps it up to date.
import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Follower } from "./api";
import { clockTime } from "./format";
import { api, forget, Navigation, store, useArrival, useStore } from "./hooks";
import { CyclesPage } from "./pages/CyclesPage";
import { GangPage } from "./pages/GangPage";
import { GangsPage } from "./pages/GangsPage";
import { MapPage } from "./pages/MapPage";
import { QueuesPage } from "./pages/QueuesPage";
import { ReplayPage } from "./pages/ReplayPage";
import { WhatIfPage } from "./pages/WhatIfPage";
import { Attempt, Problem } from "./parts";
import { formatRoute, parseRoute } from "./route";
import type { Cluster } from "./store";
import "./style.css";

const TITLES: Record<string, string> = {
  map: "Map",
  gangs: "Gangs",
  queues: "Queues",
  "what-if": "What if",
  replay: "Replay",
  cycles: "Cycles",
};

function App() {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  const [visit, setVisit] = useState(0);
  const { cluster, connection, problem } = useStore();
  useEffect(() => {
    const follow = () => setRoute(parseRoute(location.hash));
    window.addEventListener("hashchange", follow);
    return () => window.removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    const follower = new Follower(api, store);
    follower.run();
    return () => follower.stop();
  }, [visit]);
  const title =
    route.page === "gang" ? (route.query.key ?? "").split("/").pop()! : (TITLES[route.page] ?? "");
  useEffect(() => {
    document.title = `${title} · Spinney`;
  }, [title]);
  useArrival(`${route.page} ${route.page === "gang" ? route.query.key : ""}`);
  const navigation = useMemo(
    () => ({
      query: route.query,
      go: (change: Record<string, string>) => {
        history.replaceState(history.state, "", formatRoute(route.page, { ...route.query, ...change }));
        setRoute(parseRoute(location.hash));
      },
    }),
    [route],
  );
  if (connection === "token" && !cluster) {
    return <Token problem={problem} onToken={() => setVisit(visit + 1)} />;
  }
  return (
    <Navigation.Provider value={navigation}>
      <button type="button" class="skip" onClick={() => document.getElementById("content")?.focus()}>
        Skip to content
      </button>
      <header>
        <strong class="brand">Spinney</strong>
        <nav aria-label="Pages">
          {Object.entries(TITLES).map(([page, text]) => (
            <a
              key={page}
              href={formatRoute(page)}
              aria-current={
                page === route.page || (page === "gangs" && route.page === "gang") ? "page" : undefined
              }
            >
              {text}
            </a>
          ))}
        </nav>
        <p class="dim changed">
          <output class={`connection connection-${connection}`} title={problem}>
            {connection === "broken" ? "connection broken, trying again" : connection}
          </output>
          {connection === "live" && cluster && ` · ${clockTime(cluster.at)}`}
        </p>
      </header>
      <main id="content" tabIndex={-1} aria-labelledby="title">
        <h1 class="hidden" id="title">
          {title}
        </h1>
        {cluster ? (
          <>
            {cluster.trouble && <Problem>{cluster.trouble}</Problem>}
            <Notes cluster={cluster} />
            <Attempt at={formatRoute(route.page, route.query)}>
              <Shown page={route.page} cluster={cluster} />
            </Attempt>
          </>
        ) : problem ? (
          <Problem>{problem}</Problem>
        ) : (
          <p class="dim">reading the cluster…</p>
        )}
      </main>
      <footer class="dim">{cluster && `${cluster.source} · read only`}</footer>
    </Navigation.Provider>
  );
}

function Shown({ page, cluster }: { page: string; cluster: Cluster }) {
  switch (page) {
    case "gangs":
      return <GangsPage cluster={cluster} />;
    case "gang":
      return <GangPage cluster={cluster} />;
    case "queues":
      return <QueuesPage cluster={cluster} />;
    case "replay":
      return <ReplayPage />;
    case "cycles":
      return <CyclesPage />;
    case "what-if":
      return <WhatIfPage cluster={cluster} />;
    default:
      return <MapPage cluster={cluster} />;
  }
}

/** Says what the viewer may not read: a cell that looks free may be in use by somebody they may not see. */
function Notes({ cluster }: { cluster: Cluster }) {
  const hidden = cluster.unseen.map((each) => each.what);
  if (hidden.length === 0) return null;
  return (
    <details class="notes">
      <summary>
        {cluster.namespaces
          ? `Pods of ${cluster.namespaces.length ? `namespace ${cluster.namespaces.join(", ")}` : "no namespace"} are shown: you may not list the others, and a cell that looks free may be in use`
          : "Some kinds may not be listed"}
      </summary>
      <p>Not listed, or not everywhere: {hidden.join(", ")}.</p>
    </details>
  );
}

function Token({ problem, onToken }: { problem: string; onToken: () => void }) {
  const [token, setToken] = useState("");
  const [namespaces, setNamespaces] = useState("");
  return (
    <main class="token">
      <h1>Spinney</h1>
      <p>Give a bearer token of the cluster. Everything is read with it, and you see what it may read.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          api.use(token, namespaces);
          forget("outcome");
          store.update({ connection: "connecting", problem: "", cluster: null });
          onToken();
        }}
      >
        <label class="field">
          <span>Token</span>
          <input
            type="password"
            autoComplete="off"
            required
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>Namespaces, where you may not list all (a, b)</span>
          <input value={namespaces} onInput={(event) => setNamespaces(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary">
          Show the cluster
        </button>
      </form>
      {problem && <Problem>{problem}</Problem>}
      <p class="dim">It stays in this page's memory and is gone when you close or reload it.</p>
    </main>
  );
}

render(<App />, document.getElementById("app")!);
