// What would become of a workload: where it would go and whom it would cost. Nothing is written.
import { useMemo, useState } from "preact/hooks";
import { count } from "../format";
import { api, useKept, useNavigation } from "../hooks";
import { natural } from "../map/layout";
import { MapCanvas } from "../map/MapCanvas";
import { Field, GangLink, Problem } from "../parts";
import type { Cluster } from "../store";
import type { NodeRow, WhatIfAnswer } from "../types";
import { EXAMPLES } from "./examples";

interface Told {
  answer: WhatIfAnswer | null;
  problem: string;
}

export function WhatIfPage({ cluster }: { cluster: Cluster }) {
  const { query, go } = useNavigation();
  const queue = leafQueue(cluster);
  const linked = Object.hasOwn(EXAMPLES, query.example ?? "") ? query.example! : "";
  const begun = linked || "training";
  const fresh = { example: begun, text: EXAMPLES[begun]!.text(queue), namespace: "default" };
  const [kept, keep] = useKept("what-if", fresh);
  const draft = linked && linked !== kept.example ? fresh : kept;
  const { example, text, namespace } = draft;
  const [{ answer, problem }, tell] = useKept<Told>("outcome", { answer: null, problem: "" });
  const [busy, setBusy] = useState(false);
  const ask = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    tell({ answer, problem: "" });
    try {
      tell({ answer: await api.whatIf(text, namespace), problem: "" });
    } catch (error) {
      tell({ answer: null, problem: (error as Error).message });
    }
    setBusy(false);
  };
  return (
    <div class="split">
      <form class="what-if" onSubmit={ask}>
        <h2>What if this were applied?</h2>
        <p class="dim">
          The production scheduler decides on a copy of the cluster as it is now. Nothing is written. Paste
          any workload that Spinney knows: a PodCliqueSet, Job, JobSet, PyTorchJob, pods.
        </p>
        <div class="toolbar">
          <Field label="Example">
            <select
              value={example}
              onChange={(event) => {
                const chosen = event.currentTarget.value;
                keep({ example: chosen, text: EXAMPLES[chosen]!.text(queue), namespace });
                go({ example: chosen });
              }}
            >
              {Object.entries(EXAMPLES).map(([name, example]) => (
                <option key={name} value={name}>
                  {example.title}
                </option>
              ))}
            </select>
          </Field>
          <Field label="Namespace">
            <input
              value={namespace}
              onInput={(event) => keep({ ...draft, namespace: event.currentTarget.value })}
            />
          </Field>
        </div>
        <Field label="Manifests, as YAML">
          <textarea
            rows={22}
            spellcheck={false}
            value={text}
            onInput={(event) => keep({ ...draft, text: event.currentTarget.value })}
          />
        </Field>
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "simulating…" : "Try it"}
        </button>
      </form>
      <section class="grow" aria-label="Outcome" aria-live="polite" aria-busy={busy}>
        {problem && <Problem>{problem}</Problem>}
        {answer ? (
          <Outcome cluster={cluster} answer={answer} />
        ) : (
          !problem && <p class="dim">The outcome is shown here.</p>
        )}
      </section>
    </div>
  );
}

/** Returns the first queue that has none below it, where workloads may be; empty without queues. */
function leafQueue(cluster: Cluster): string {
  const parents = new Set(cluster.queues.map((row) => row.line.parent));
  return cluster.queues.find((row) => !parents.has(row.line.name) && !row.line.problem)?.line.name ?? "";
}

function Outcome({ cluster, answer }: { cluster: Cluster; answer: WhatIfAnswer }) {
  const added = new Set(answer.added ?? []);
  const placed = (answer.placed ?? []).filter((each) => added.has(each.gang));
  const others = (answer.placed ?? []).filter((each) => !added.has(each.gang));
  const pending = (answer.pending ?? []).filter((each) => added.has(each.gang));
  const evicted = answer.evicted ?? [];
  const rows = useMemo(() => after(cluster, answer), [cluster.revision, answer]);
  return (
    <>
      <h2>
        {added.size === 0
          ? "It has no pods to place"
          : pending.length === 0 && placed.length > 0
            ? `It starts: ${count(placed.length, "pod")} on ${count(new Set(placed.map((each) => each.node)).size, "node")}`
            : placed.length > 0
              ? "It starts in part"
              : "It would wait"}
      </h2>
      {answer.note && <p class="dim">Note: {answer.note}.</p>}
      {pending.map((each) => (
        <p key={each.gang}>
          <strong>{each.gang.split("/").pop()}</strong>: {each.message}
        </p>
      ))}
      {evicted.length > 0 && (
        <>
          <h3>Whom it would cost</h3>
          <ul>
            {evicted.map((each) => (
              <li key={each.pod}>
                {each.pod} of <GangLink gang={each.gang} /> would be evicted from {each.node}
                {each.beneficiary && ` for ${each.beneficiary.split("/").pop()}`}
              </li>
            ))}
          </ul>
        </>
      )}
      {evicted.length === 0 && placed.length > 0 && <p>Nobody would be evicted.</p>}
      {others.length > 0 && (
        <p class="dim">Of what waits now, {count(others.length, "pod")} would be placed as well.</p>
      )}
      <div class="map-frame small">
        <MapCanvas
          rows={rows}
          levels={cluster.levels.length}
          by="gang"
          only={[...added][0] ?? ""}
          label="Map of where it would go."
        />
      </div>
      {placed.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>Node</th>
              <th>Pods</th>
            </tr>
          </thead>
          <tbody>
            {[...grouped(placed)]
              .sort((a, b) => natural(a[0], b[0]))
              .map(([node, pods]) => (
                <tr key={node}>
                  <th scope="row">{node}</th>
                  <td>{pods.join(", ")}</td>
                </tr>
              ))}
          </tbody>
        </table>
      )}
      {answer.settled === false && (
        <p class="dim">The last of {answer.cycles} cycles still changed something.</p>
      )}
    </>
  );
}

function grouped(placed: { pod: string; node: string }[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const each of placed)
    found.set(each.node, [...(found.get(each.node) ?? []), each.pod.split("/").pop()!]);
  return found;
}

/** Returns the nodes as they would be: without what was evicted, with what was placed. */
function after(cluster: Cluster, answer: WhatIfAnswer): NodeRow[] {
  const gone = new Set((answer.evicted ?? []).map((each) => `${each.node} ${each.gang}`));
  const coming = new Map<string, Map<string, number>>();
  for (const each of answer.placed ?? []) {
    const gangs = coming.get(each.node) ?? new Map<string, number>();
    gangs.set(each.gang, (gangs.get(each.gang) ?? 0) + (each.gpus ?? 0));
    coming.set(each.node, gangs);
  }
  return [...cluster.nodes.values()]
    .sort((a, b) => natural(a.name, b.name))
    .map((row) => {
      const kept = (row.held ?? []).filter((held) => !gone.has(`${row.name} ${held.gang}`));
      const more = [...(coming.get(row.name) ?? [])].map(([gang, cells]) => ({ gang, cells }));
      return more.length || kept.length !== (row.held ?? []).length
        ? { ...row, held: [...kept, ...more] }
        : row;
    });
}
