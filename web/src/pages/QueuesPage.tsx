// The tree of queues: what each is entitled to, holds and asks for, who borrows from whom, and how it went.
import { count, quantity, resource } from "../format";
import { api, useFetched, useNavigation, useNow } from "../hooks";
import { Plot } from "../Plot";
import { Problem, Scrolled } from "../parts";
import { formatRoute } from "../route";
import { type Cluster, hides } from "../store";
import type { QueueRow, Sample } from "../types";

const GPU = "nvidia.com/gpu";

export function QueuesPage({ cluster }: { cluster: Cluster }) {
  const { query, go } = useNavigation();
  const name = query.resource || GPU;
  const chosen = cluster.queues.find((row) => row.line.name === query.queue) ?? cluster.queues[0];
  const turn = Math.floor(useNow(5000) / 10_000);
  const hours = query.hours ?? "";
  const queue = chosen?.line.name ?? "";
  const history = useFetched(`${queue}:${hours}`, `${turn}`, () => api.queueHistory(queue, hours));
  const about = useFetched("about", "", api.about);
  const kinds = [...new Set(cluster.queues.flatMap((row) => Object.keys(row.line.shares ?? {})))];
  if (cluster.queues.length === 0) {
    return hides(cluster, "queues.scheduling.run.ai", "clusterqueues.kueue.x-k8s.io") ? (
      <p>You may not list queues.</p>
    ) : (
      <p>There are no queues: every gang may hold all of the cluster.</p>
    );
  }
  const most = Math.max(1, ...cluster.queues.flatMap((row) => figures(row, name)));
  return (
    <section aria-label="Queues">
      <div class="toolbar">
        <label class="field">
          <span>Resource</span>
          <select value={name} onChange={(event) => go({ resource: event.currentTarget.value })}>
            {(kinds.length ? kinds : [GPU]).map((each) => (
              <option key={each} value={each}>
                {resource(each)}
              </option>
            ))}
          </select>
        </label>
        {about.value?.prometheus && (
          <label class="field">
            <span>History</span>
            <select value={hours} onChange={(event) => go({ hours: event.currentTarget.value })}>
              <option value="">while the dashboard ran</option>
              <option value="24">a day</option>
              <option value="168">a week</option>
            </select>
          </label>
        )}
      </div>
      <Scrolled label="Tree of queues">
        <table class="wide">
          <thead>
            <tr>
              <th>Queue</th>
              <th>Use</th>
              <th>Holds</th>
              <th>Asks for</th>
              <th>Quota</th>
              <th>Fair share</th>
              <th>Limit</th>
              <th>Waiting</th>
              <th>Borrows</th>
            </tr>
          </thead>
          <tbody>
            {cluster.queues.map((row) => (
              <Queue key={row.line.name} row={row} name={name} most={most} chosen={row === chosen} />
            ))}
          </tbody>
        </table>
      </Scrolled>
      {history.problem && <Problem>{history.problem}</Problem>}
      {history.value && <History queue={queue} samples={history.value[queue] ?? []} />}
    </section>
  );
}

function figures(row: QueueRow, name: string): number[] {
  const share = row.line.shares?.[name];
  return share ? [share.allocated, share.requested, share.quota].map(Number).filter(Number.isFinite) : [];
}

function Queue({ row, name, most, chosen }: { row: QueueRow; name: string; most: number; chosen: boolean }) {
  const { line, borrowing } = row;
  const share = line.shares?.[name];
  const lenders = Object.entries(borrowing?.lenders ?? {});
  return (
    <tr class={chosen ? "chosen-row" : ""}>
      <th scope="row" style={{ paddingLeft: `${0.6 + 1.4 * (line.depth ?? 0)}rem` }}>
        <a
          href={formatRoute("queues", { queue: line.name, resource: name === GPU ? "" : name })}
          aria-current={chosen ? "true" : undefined}
        >
          {line.name}
        </a>
        {line.problem && <span class="problem"> {line.problem}</span>}
      </th>
      <td>{share && <Bar share={share} most={most} />}</td>
      {share ? (
        [share.allocated, share.requested, share.quota, share.fairShare, share.limit].map((text, place) => (
          <td key={place}>{quantity(name, text)}</td>
        ))
      ) : (
        <td colSpan={5} />
      )}
      <td>
        {line.pendingGangs ? (
          <a href={formatRoute("gangs", { queue: line.name, state: "pending" })}>
            {count(line.pendingGangs, "gang")}
          </a>
        ) : (
          ""
        )}
      </td>
      <td>
        {borrowing && name === GPU && (
          <>
            {count(borrowing.gpus, "GPU")}
            {lenders.length > 0 && (
              <span class="dim">
                {" "}
                unused by {lenders.map(([queue, gpus]) => `${queue} (${gpus})`).join(", ")}
              </span>
            )}
          </>
        )}
      </td>
    </tr>
  );
}

function Bar({
  share,
  most,
}: {
  share: { allocated: string; requested: string; quota: string };
  most: number;
}) {
  const part = (text: string) => `${Math.min(100, (100 * Number(text)) / most)}%`;
  const quota = Number(share.quota);
  const above = Number.isFinite(quota) && Number(share.allocated) > quota;
  return (
    <div
      class="bar"
      role="img"
      aria-label={`${share.allocated} held, ${share.requested} asked for, quota ${share.quota}`}
    >
      <span class="bar-asked" style={{ width: part(share.requested) }} />
      <span class={above ? "bar-held bar-above" : "bar-held"} style={{ width: part(share.allocated) }} />
      {Number.isFinite(quota) && <span class="bar-quota" style={{ left: part(share.quota) }} />}
    </div>
  );
}

function History({ queue, samples }: { queue: string; samples: Sample[] }) {
  return (
    <section>
      <h2>{queue} over time</h2>
      {samples.length < 2 ? (
        <p class="dim">What it holds is noted every ten seconds while the dashboard runs.</p>
      ) : (
        <Plot
          times={samples.map((each) => each[0])}
          unit="GPUs"
          label={`GPUs of queue ${queue} over time; now it holds ${samples[samples.length - 1]![1]}.`}
          curves={[
            { label: "holds", colour: ["#2f6fde", "#6ea3ff"], values: samples.map((each) => each[1]) },
            {
              label: "asks for",
              colour: ["#d2691e", "#f0995a"],
              dash: [2, 3],
              values: samples.map((each) => each[2]),
            },
            {
              label: "fair share",
              colour: ["#2e8b57", "#5cc48a"],
              dash: [8, 4],
              values: samples.map((each) => each[3]),
            },
          ]}
        />
      )}
    </section>
  );
}
