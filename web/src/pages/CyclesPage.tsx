// What each cycle of a scheduler cost, by action and plugin, and what it decided.
import { useRef } from "preact/hooks";
import { count, dayTime } from "../format";
import { api, useFetched, useNavigation, useNow } from "../hooks";
import { Plot } from "../Plot";
import { GangLink, Problem, Scrolled } from "../parts";
import { formatRoute } from "../route";
import type { CycleRecord, Cycles } from "../types";
import { costs } from "./costs";
import { recent } from "./recent";

export function CyclesPage() {
  const now = useNow(2000);
  const turn = Math.floor(now / 4000);
  const known = useRef<Cycles[]>([]);
  const fetched = useFetched("cycles", `${turn}`, async () => {
    known.current = await recent(known.current, api.cycles);
    return known.current;
  });
  if (fetched.problem) return <Problem>{fetched.problem}</Problem>;
  if (!fetched.value) return <p class="dim">reading…</p>;
  if (fetched.value.length === 0) {
    return <p>No scheduler's endpoint is known: start the dashboard with --scheduler and its address.</p>;
  }
  return (
    <>
      {fetched.value.map((each) => (
        <Scheduler key={each.scheduler} told={each} now={now} />
      ))}
    </>
  );
}

function Scheduler({ told, now }: { told: Cycles; now: number }) {
  const { query } = useNavigation();
  const cycles = told.cycles ?? [];
  const chosen = cycles.find((each) => `${each.number}` === query.cycle) ?? cycles[cycles.length - 1];
  return (
    <section aria-label={told.scheduler}>
      <h2>{told.scheduler}</h2>
      {told.problem && <Problem>{told.problem}</Problem>}
      {cycles.length === 0 && !told.problem && (
        <p class="dim">No cycle has run yet; a cluster at rest runs none.</p>
      )}
      {cycles.length > 1 && (
        <Plot
          times={cycles.map((each) => Date.parse(each.at) / 1000)}
          unit="ms"
          label={`How long each of the last ${cycles.length} cycles took.`}
          curves={[
            {
              label: "cycle",
              colour: ["#2f6fde", "#6ea3ff"],
              values: cycles.map((each) => each.seconds * 1000),
            },
          ]}
        />
      )}
      <div class="columns">
        <Table cycles={cycles} chosen={chosen} now={now} />
        {chosen && <Cycle cycle={chosen} cycles={cycles} />}
      </div>
    </section>
  );
}

function Table({
  cycles,
  chosen,
  now,
}: {
  cycles: CycleRecord[];
  chosen: CycleRecord | undefined;
  now: number;
}) {
  return (
    <Scrolled label="Table of cycles" short>
      <table>
        <thead>
          <tr>
            <th>Cycle</th>
            <th>At</th>
            <th>Took</th>
            <th>Waiting before</th>
            <th>Bound</th>
            <th>Evicted</th>
            <th>Refused</th>
          </tr>
        </thead>
        <tbody>
          {[...cycles].reverse().map((each) => (
            <tr key={each.number} class={each === chosen ? "chosen-row" : ""}>
              <th scope="row">
                <a href={formatRoute("cycles", { cycle: `${each.number}` })}>{each.number}</a>
              </th>
              <td>{dayTime(each.at, now)}</td>
              <td>{milliseconds(each.seconds)}</td>
              <td>{each.pending}</td>
              <td>{each.binds}</td>
              <td>{each.evictions}</td>
              <td>{each.unschedulable}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolled>
  );
}

function Cycle({ cycle, cycles }: { cycle: CycleRecord; cycles: CycleRecord[] }) {
  const decisions = cycle.decisions ?? [];
  const rows = costs(cycle, cycles);
  const most = Math.max(1e-9, ...rows.map((row) => row.seconds));
  return (
    <section class="grow">
      <h3>Cycle {cycle.number}: what was decided</h3>
      {decisions.length === 0 && <p class="dim">Nothing changed.</p>}
      <ul class="plain">
        {decisions.map((each) => (
          <li key={`${each.what}${each.gang}${each.text}`}>
            <strong>{each.what}</strong> <GangLink gang={each.gang} />
            {each.pods > 0 && `, ${count(each.pods, "pod")}`} <span class="dim">{each.text}</span>
          </li>
        ))}
      </ul>
      {(cycle.more ?? 0) > 0 && <p class="dim">and {cycle.more} more</p>}
      <h3>What it cost</h3>
      <Scrolled label="What it cost">
        <table class="cost">
          <thead>
            <tr>
              <th>Plugin or action</th>
              <th>Point</th>
              <th>This cycle</th>
              <th>Mean of {cycles.length}</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, 25).map((row) => (
              <tr key={`${row.plugin}/${row.hook}`}>
                <th scope="row">{row.plugin}</th>
                <td>{row.hook}</td>
                <td>{milliseconds(row.seconds)}</td>
                <td>{milliseconds(row.mean)}</td>
                <td>
                  <div class="bar" aria-hidden="true">
                    <span class="bar-held" style={{ width: `${(100 * row.seconds) / most}%` }} />
                  </div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolled>
    </section>
  );
}

function milliseconds(seconds: number): string {
  const value = seconds * 1000;
  return `${value < 10 ? value.toFixed(2) : Math.round(value).toLocaleString("en")} ms`;
}
