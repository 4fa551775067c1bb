// A replay's report: its figures, and the map at any moment of it. The file is read here and goes nowhere.
import { useEffect, useMemo, useState } from "preact/hooks";
import { count, duration } from "../format";
import { useKept, useNavigation } from "../hooks";
import { MapCanvas } from "../map/MapCanvas";
import { Plot } from "../Plot";
import { Attempt, Field, Problem, Scrolled } from "../parts";
import { Player, type Report, type Run, readReport } from "./replaying";

const SHOWN: [string, string][] = [
  ["jobs", "jobs"],
  ["started", "started"],
  ["gpus", "GPUs"],
  ["used", "GPU time in use, %"],
  ["fragmentation", "fragmentation, %"],
  ["evictions", "evictions"],
  ["waited", "jobs that waited"],
  ["fairness", "fairness (Jain)"],
  ["cycles", "cycles"],
];

/** A report, and how many were opened before it. */
interface Opened {
  report: Report | null;
  number: number;
}

export function ReplayPage() {
  const [{ report, number }, setReport] = useKept<Opened>("report", { report: null, number: 0 });
  const [problem, setProblem] = useState("");
  const { go } = useNavigation();
  const [chosen, choose] = useKept("run", 0);
  const open = async (file: File | undefined) => {
    if (!file) return;
    try {
      setReport({ report: readReport(await file.text()), number: number + 1 });
      choose(0);
      go({ at: "" });
      setProblem("");
    } catch (error) {
      setReport({ report: null, number });
      setProblem((error as Error).message);
    }
  };
  const run = report?.runs[chosen];
  return (
    <section aria-label="Replay">
      <div class="toolbar">
        <Field label="Report">
          <input
            type="file"
            accept="application/json,.json"
            onChange={(event) => open(event.currentTarget.files?.[0])}
          />
        </Field>
        {report && report.runs.length > 1 && (
          <Field label="Configuration">
            <select value={`${chosen}`} onChange={(event) => choose(Number(event.currentTarget.value))}>
              {report.runs.map((each, place) => (
                <option key={`${each.config}${each.seed}`} value={`${place}`}>
                  {each.config}
                  {each.seed === null ? "" : `, seed ${each.seed}`}
                </option>
              ))}
            </select>
          </Field>
        )}
      </div>
      {problem && <Problem>{problem}</Problem>}
      {!report && !problem && (
        <p class="dim">
          Choose the file that <code>spinney replay TRACE -o json --timeline</code> wrote. It is read in your
          browser and sent to nobody.
        </p>
      )}
      {report && run && (
        <Attempt at={`${number}:${chosen}`}>
          <h2>{report.trace}</h2>
          {report.notes.map((note) => (
            <p key={note} class="dim">
              {note}
            </p>
          ))}
          <Moments key={`${number}:${chosen}`} run={run} />
          <Summary runs={report.runs} />
        </Attempt>
      )}
    </section>
  );
}

function Moments({ run }: { run: Run }) {
  const { query, go } = useNavigation();
  const player = useMemo(() => (run.timeline ? new Player(run.timeline) : null), [run]);
  const [at, move] = useState(() =>
    player ? Math.min(Math.max(Number(query.at) || player.begin, player.begin), player.end) : 0,
  );
  const [playing, play] = useState(false);
  const span = player ? player.end - player.begin : 0;
  useEffect(() => {
    if (!playing || !player) return;
    const timer = setInterval(() => {
      move((now) => {
        if (now >= player.end) play(false);
        return Math.min(player.end, now + span / 300);
      });
    }, 100);
    return () => clearInterval(timer);
  }, [playing, player, span]);
  if (!player) {
    return <p>The report has no timeline: run the replay with --timeline to see it on the map.</p>;
  }
  player.seek(at);
  const rows = player.rows();
  const curve = (name: "occupancy" | "waiting") => run.figures[name] ?? [];
  return (
    <>
      <div class="slider">
        <button type="button" onClick={() => play(!playing)}>
          {playing ? "Pause" : "Play"}
        </button>
        <label class="grow field">
          <span>
            {duration(at - player.begin)} of {duration(span)}: {count(player.running, "job")} running,{" "}
            {player.waiting} waiting
          </span>
          <input
            type="range"
            min={player.begin}
            max={player.end}
            step={Math.max(span / 2000, 0.001)}
            value={at}
            onInput={(event) => move(Number(event.currentTarget.value))}
            onChange={(event) => go({ at: event.currentTarget.value })}
          />
        </label>
      </div>
      <div class="map-frame">
        <MapCanvas
          rows={rows}
          levels={run.timeline!.levels.length}
          by={query.by === "queue" ? "queue" : "gang"}
          label={`Map of the replay: ${player.running} jobs run on ${rows.length} nodes.`}
        />
      </div>
      <div class="columns">
        {(["occupancy", "waiting"] as const).map((name) => {
          const points = curve(name);
          return (
            points.length > 1 && (
              <div class="grow" key={name}>
                <h3>{name === "occupancy" ? "GPUs given out" : "Jobs that wait"}</h3>
                <Plot
                  times={points.map((point) => point[0])}
                  hours
                  unit={name === "occupancy" ? "%" : "jobs"}
                  label={`${name} over the hours of the replay.`}
                  curves={[
                    { label: name, colour: ["#2f6fde", "#6ea3ff"], values: points.map((point) => point[1]) },
                  ]}
                />
              </div>
            )
          );
        })}
      </div>
    </>
  );
}

function Summary({ runs }: { runs: Run[] }) {
  return (
    <Scrolled label="Figures">
      <table>
        <caption>Figures</caption>
        <thead>
          <tr>
            <td />
            {runs.map((run) => (
              <th key={`${run.config}${run.seed}`}>
                {run.config}
                {run.seed === null ? "" : `, seed ${run.seed}`}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {SHOWN.map(([name, text]) => (
            <tr key={name}>
              <th scope="row">{text}</th>
              {runs.map((run) => (
                <td key={`${run.config}${run.seed}`}>{shown(run.figures[name])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolled>
  );
}

function shown(value: unknown): string {
  return typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 2 }) : "";
}
