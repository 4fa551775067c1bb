// Where gangs are: the cluster as a map, with what a waiting gang lacks in each domain.
import { useMemo, useState } from "preact/hooks";
import { count, shortage } from "../format";
import { api, useFetched, useNavigation } from "../hooks";
import type { ColourBy } from "../map/cells";
import { natural } from "../map/layout";
import { type Light, MapCanvas } from "../map/MapCanvas";
import { Field, GangLink, Problem, StateWord } from "../parts";
import { formatRoute } from "../route";
import { type Cluster, hides } from "../store";
import type { DomainReport, GangRow, NodeRow } from "../types";
import { WAITING, waits } from "./filter";

const SHOWN = 12;

export function MapPage({ cluster }: { cluster: Cluster }) {
  const { query, go } = useNavigation();
  const by = (["gang", "queue", "state"].includes(query.by ?? "") ? query.by : "gang") as ColourBy;
  const rows = useMemo(
    () => [...cluster.nodes.values()].sort((a, b) => natural(a.name, b.name)),
    [cluster.revision],
  );
  const gang = cluster.gangs.get(query.gang ?? "");
  const waiting = gang !== undefined && waits(gang);
  const why = useFetched(waiting ? gang.key : "", gang?.reason ?? "", () =>
    waiting ? api.why(gang.key) : Promise.resolve(null),
  );
  const lights = useMemo(() => lightsOf(waiting ? (why.value?.domains ?? []) : []), [why.value, waiting]);
  const [hover, setHover] = useState<{ node: NodeRow; x: number; y: number } | null>(null);
  const selected = cluster.nodes.get(query.node ?? "");
  const totals = totalsOf(rows);
  const levels = cluster.levels.length;

  return (
    <div class="split">
      <section class="grow" aria-label="Map">
        <div class="toolbar">
          <Field label="Colour by">
            <select value={by} onChange={(event) => go({ by: event.currentTarget.value })}>
              <option value="gang">gang</option>
              <option value="queue">queue</option>
              <option value="state">state</option>
            </select>
          </Field>
          <Field label="Find">
            <input
              type="search"
              value={query.find ?? ""}
              placeholder="node, gang or rack"
              onInput={(event) => go({ find: event.currentTarget.value })}
            />
          </Field>
          {gang && (
            <p class="chosen">
              <GangLink gang={gang.key} /> <StateWord state={gang.state} />
              {waiting && why.busy && <span class="dim"> looking at what each domain lacks…</span>}
              <button type="button" onClick={() => go({ gang: "" })} aria-label="Show all gangs">
                ✕
              </button>
            </p>
          )}
        </div>
        {rows.length === 0 && (
          <p>{hides(cluster, "nodes") ? "You may not list nodes." : "The cluster has no nodes."}</p>
        )}
        <div class="map-frame">
          <MapCanvas
            rows={rows}
            levels={levels}
            by={by}
            only={waiting ? "" : (gang?.key ?? "")}
            selected={selected?.name ?? ""}
            lights={lights}
            label={`Map of ${count(rows.length, "node")} with ${count(totals.cells, cluster.unit)}: ${totals.held} in use, ${totals.free} free.`}
            onHover={(name, x, y) => {
              const node = name ? cluster.nodes.get(name) : undefined;
              setHover(node ? { node, x, y } : null);
            }}
            onPick={(name) => go({ node: name })}
          />
          {hover && <Hint {...hover} unit={cluster.unit} />}
        </div>
        <Legend unit={cluster.unit} totals={totals} />
      </section>
      <aside class="side" aria-label="Details">
        {query.find && <Found find={query.find} rows={rows} gangs={[...cluster.gangs.values()]} />}
        {selected ? (
          <NodeDetails node={selected} unit={cluster.unit} levels={cluster.levels} />
        ) : (
          !query.find && <Waiting cluster={cluster} />
        )}
        {waiting && why.problem && <Problem>{why.problem}</Problem>}
        {waiting && why.value && <Lacks domains={why.value.domains ?? []} />}
        <Domains rows={rows} levels={cluster.levels} unit={cluster.unit} />
      </aside>
    </div>
  );
}

interface Totals {
  cells: number;
  held: number;
  reserved: number;
  free: number;
  cordoned: number;
  failed: number;
}

export function totalsOf(rows: NodeRow[]): Totals {
  const totals: Totals = { cells: 0, held: 0, reserved: 0, free: 0, cordoned: 0, failed: 0 };
  for (const row of rows) {
    const cells = row.cells ?? 0;
    let used = 0;
    for (const held of row.held ?? []) {
      totals[held.reserved ? "reserved" : "held"] += held.cells ?? 0;
      used += held.cells ?? 0;
    }
    totals.cells += cells;
    const left = row.state === "failed" ? "failed" : row.state === "cordoned" ? "cordoned" : "free";
    totals[left] += cells - used;
  }
  return totals;
}

function lightsOf(domains: DomainReport[]): Map<string, Light> {
  return new Map(
    domains
      .filter((report) => report.path)
      .map((report) => [
        report.path!.join("/"),
        {
          text: `${report.fits}/${report.needed}${lackText(report) ? `, lacks ${lackText(report)}` : ""}`,
          tone: report.fits >= report.needed ? "good" : report.possible === false ? "never" : "near",
        },
      ]),
  );
}

function lackText(report: DomainReport): string {
  return (report.shortages ?? []).map((each) => shortage(each.resource, each.amount)).join(", ");
}

function Hint({ node, x, y, unit }: { node: NodeRow; x: number; y: number; unit: string }) {
  return (
    <div class="hint" style={{ left: `${x + 14}px`, top: `${y + 14}px` }} aria-hidden="true">
      <strong>{node.name}</strong> <span class="dim">{node.path?.filter(Boolean).join(" / ")}</span>
      <Holders node={node} unit={unit} />
    </div>
  );
}

function Holders({ node, unit }: { node: NodeRow; unit: string }) {
  const held = node.held ?? [];
  const used = held.reduce((sum, each) => sum + (each.cells ?? 0), 0);
  return (
    <ul class="plain">
      {held.map((each) => (
        <li key={`${each.gang}${each.reserved}`}>
          <GangLink gang={each.gang ?? ""} /> {count(each.cells ?? 0, unit)}
          {each.reserved ? ", reserved" : ""}
          {each.queue ? <span class="dim"> queue {each.queue}</span> : null}
        </li>
      ))}
      <li class="dim">
        {count((node.cells ?? 0) - used, unit)} free
        {node.state && node.state !== "ready" ? `, ${node.why}` : ""}
      </li>
    </ul>
  );
}

function NodeDetails({ node, unit, levels }: { node: NodeRow; unit: string; levels: string[] }) {
  const { go } = useNavigation();
  return (
    <section aria-live="polite">
      <h2>
        {node.name}{" "}
        <button type="button" onClick={() => go({ node: "" })} aria-label="Close">
          ✕
        </button>
      </h2>
      <dl>
        {levels.map((level, place) => (
          <div key={level}>
            <dt>{level.split("/").pop()}</dt>
            <dd>{node.path?.[place] || "none"}</dd>
          </div>
        ))}
        <div>
          <dt>state</dt>
          <dd>{node.why || node.state || "ready"}</dd>
        </div>
      </dl>
      <Holders node={node} unit={unit} />
    </section>
  );
}

function Waiting({ cluster }: { cluster: Cluster }) {
  const waiting = [...cluster.gangs.values()].filter(waits);
  return (
    <section>
      <h2>Waiting</h2>
      {waiting.length === 0 && <p class="dim">No gang waits.</p>}
      <ul class="plain">
        {waiting.slice(0, SHOWN).map((gang) => (
          <li key={gang.key}>
            <a href={formatRoute("map", { gang: gang.key })}>{gang.name}</a> <StateWord state={gang.state} />{" "}
            {count(gang.gpus ?? 0, "GPU")}
          </li>
        ))}
      </ul>
      {waiting.length > SHOWN && (
        <a href={formatRoute("gangs", { state: WAITING })}>all {waiting.length} of them</a>
      )}
      {waiting.length > 0 && <p class="dim">Choose one to see on the map what each domain lacks for it.</p>}
    </section>
  );
}

function Found({ find, rows, gangs }: { find: string; rows: NodeRow[]; gangs: GangRow[] }) {
  const text = find.toLowerCase();
  const nodes = rows.filter((row) => `${row.name} ${row.path?.join(" ") ?? ""}`.toLowerCase().includes(text));
  const named = gangs.filter((gang) => gang.name.toLowerCase().includes(text));
  return (
    <section aria-live="polite">
      <h2>Found</h2>
      <p class="dim">
        {count(named.length, "gang")}, {count(nodes.length, "node")}
      </p>
      <ul class="plain">
        {named.slice(0, SHOWN).map((gang) => (
          <li key={gang.key}>
            <a href={formatRoute("map", { gang: gang.key })}>{gang.name}</a>{" "}
            <span class="dim">gang, {gang.namespace}</span>
          </li>
        ))}
        {nodes.slice(0, SHOWN).map((row) => (
          <li key={row.name}>
            <a href={formatRoute("map", { node: row.name, find })}>{row.name}</a>{" "}
            <span class="dim">{row.path?.filter(Boolean).join(" / ")}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Lacks({ domains }: { domains: DomainReport[] }) {
  const nearest = [...domains].sort((a, b) => b.fits - a.fits || natural(a.domain, b.domain)).slice(0, SHOWN);
  if (nearest.length === 0) return null;
  return (
    <section>
      <h2>Where it could go</h2>
      <table>
        <thead>
          <tr>
            <th>{nearest[0]!.level}</th>
            <th>fits</th>
            <th>lacks</th>
          </tr>
        </thead>
        <tbody>
          {nearest.map((report) => (
            <tr key={report.domain}>
              <td>{report.domain || "all nodes"}</td>
              <td>
                {report.fits} of {report.needed}
              </td>
              <td>{lackText(report) || (report.possible === false ? "too small, even when empty" : "")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Domains({ rows, levels, unit }: { rows: NodeRow[]; levels: string[]; unit: string }) {
  const [open, setOpen] = useState(false);
  const groups = useMemo(() => {
    const found = new Map<string, NodeRow[]>();
    if (!open) return found;
    for (const row of rows) {
      const name = row.path?.filter(Boolean).join(" / ") || "no domain";
      const group = found.get(name);
      if (group) group.push(row);
      else found.set(name, [row]);
    }
    return found;
  }, [rows, open]);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The same as a table</summary>
      <table>
        <thead>
          <tr>
            <th>{levels.map((level) => level.split("/").pop()).join(" / ") || "nodes"}</th>
            <th>nodes</th>
            <th>{unit} in use</th>
            <th>free</th>
          </tr>
        </thead>
        <tbody>
          {[...groups].slice(0, 500).map(([name, members]) => {
            const totals = totalsOf(members);
            return (
              <tr key={name}>
                <td>{name}</td>
                <td>{members.length}</td>
                <td>{totals.held}</td>
                <td>{totals.free}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </details>
  );
}

function Legend({ unit, totals }: { unit: string; totals: Totals }) {
  const known: [string, string, number][] = [
    ["held", "in use, by gang or queue", totals.held],
    ["reserved", "reserved", totals.reserved],
    ["free", "free", totals.free],
    ["cordoned", "cordoned", totals.cordoned],
    ["failed", "failed", totals.failed],
  ];
  return (
    <ul class="legend" aria-label={`Legend: a cell is a ${unit === "GPU" ? "GPU" : "part of a node's CPU"}`}>
      {known.map(([name, text, number]) => (
        <li key={name}>
          <span class={`swatch swatch-${name}`} aria-hidden="true" /> {text}{" "}
          <span class="dim">{number.toLocaleString("en")}</span>
        </li>
      ))}
    </ul>
  );
}
