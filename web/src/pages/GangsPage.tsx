// Every gang in a table; what is filtered and how it is ordered stands in the address.
import { useMemo } from "preact/hooks";
import { age } from "../format";
import { useNavigation, useNow } from "../hooks";
import { natural } from "../map/layout";
import { Field, GangLink, Scrolled, StateWord } from "../parts";
import { formatRoute } from "../route";
import type { Cluster } from "../store";
import { filtered } from "./filter";

const SHOWN = 500;
const COLUMNS: [string, string][] = [
  ["name", "Gang"],
  ["namespace", "Namespace"],
  ["state", "State"],
  ["queue", "Queue"],
  ["pods", "Pods"],
  ["gpus", "GPUs"],
  ["where", "Where"],
  ["age", "Age"],
  ["waits", "Waits for"],
];

export function GangsPage({ cluster }: { cluster: Cluster }) {
  const { query, go } = useNavigation();
  const now = useNow();
  const all = useMemo(() => [...cluster.gangs.values()], [cluster.revision]);
  const rows = useMemo(() => filtered(all, query), [all, query]);
  const choice = (name: "state" | "queue" | "namespace", label: string) => (
    <Field label={label}>
      <select value={query[name] ?? ""} onChange={(event) => go({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {[...new Set([...all.map((gang) => gang[name]), query[name] ?? ""])]
          .filter(Boolean)
          .sort(natural)
          .map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
      </select>
    </Field>
  );
  return (
    <section aria-label="Gangs">
      <div class="toolbar">
        {choice("state", "State")}
        {choice("queue", "Queue")}
        {choice("namespace", "Namespace")}
        <Field label="Find">
          <input
            type="search"
            value={query.find ?? ""}
            placeholder="name, workload, scheduler"
            onInput={(event) => go({ find: event.currentTarget.value })}
          />
        </Field>
        <p class="dim" aria-live="polite">
          {rows.length} of {all.length}
        </p>
      </div>
      <Scrolled label="Table of gangs">
        <table class="wide">
          <thead>
            <tr>
              {COLUMNS.map(([name, label]) => {
                const order =
                  query.sort === name ? "ascending" : query.sort === `-${name}` ? "descending" : "none";
                return (
                  <th key={name} aria-sort={order}>
                    <button
                      type="button"
                      class="sort"
                      onClick={() => go({ sort: order === "ascending" ? `-${name}` : name })}
                    >
                      {label}
                      {order === "none" ? "" : order === "ascending" ? " ▲" : " ▼"}
                    </button>
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, SHOWN).map((gang) => (
              <tr key={gang.key}>
                <th scope="row">
                  <GangLink gang={gang.key} />
                  {gang.workload && <span class="dim"> {gang.workload}</span>}
                </th>
                <td>{gang.namespace}</td>
                <td>
                  <StateWord state={gang.state} />
                </td>
                <td>
                  {gang.queue && <a href={formatRoute("queues", { queue: gang.queue })}>{gang.queue}</a>}
                </td>
                <td>
                  {gang.ready}/{gang.pods}
                </td>
                <td>{gang.gpus ?? 0}</td>
                <td>
                  {gang.spread ? (
                    <a href={formatRoute("map", { gang: gang.key })}>{gang.spread}</a>
                  ) : (
                    <span class="reason" title={gang.reason}>
                      {gang.reason}
                    </span>
                  )}
                </td>
                <td>{age(gang.created, now)}</td>
                <td>{age(gang.waitingSince, now)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolled>
      {rows.length > SHOWN && <p class="dim">The first {SHOWN} are shown; filter for the others.</p>}
      {rows.length === 0 && (
        <p class="dim">{all.length === 0 ? "There are no gangs." : "No gang matches."}</p>
      )}
    </section>
  );
}
