// One gang: its members, its story, why it waits and what would help, and its objects.
import { useState } from "preact/hooks";
import { age, count, dayTime, shortage } from "../format";
import { api, useFetched, useNavigation, useNow } from "../hooks";
import { Problem, Scrolled, StateWord } from "../parts";
import { formatRoute } from "../route";
import type { Cluster } from "../store";
import type { GangPage as Page, Remedy } from "../types";
import { waits } from "./filter";

const SHOWN = 500;

export function GangPage({ cluster }: { cluster: Cluster }) {
  const { query } = useNavigation();
  const key = query.key ?? "";
  const row = cluster.gangs.get(key);
  const now = useNow();
  const seen = `${row?.state}:${row?.placed}:${row?.ready}:${row?.pods}:${row?.reason}`;
  const page = useFetched(key, seen, () => api.gang(key));
  if (page.problem && !(row && page.value)) return <Problem>{page.problem}</Problem>;
  if (!page.value) return <p class="dim">reading…</p>;
  const gang = row ?? page.value.row;
  return (
    <article>
      <h2>
        {gang.name} <StateWord state={gang.state} />
      </h2>
      <dl class="facts">
        <Fact name="namespace">{gang.namespace}</Fact>
        <Fact name="kind">{gang.workload ? `${gang.source}, made for ${gang.workload}` : gang.source}</Fact>
        <Fact name="scheduler">{gang.scheduler || "none"}</Fact>
        <Fact name="queue">
          {gang.queue ? <a href={formatRoute("queues", { queue: gang.queue })}>{gang.queue}</a> : "none"}
        </Fact>
        <Fact name="pods">
          {gang.ready} ready, {gang.placed} placed, {gang.pods} in all, {gang.minimum} needed
        </Fact>
        <Fact name="GPUs">{gang.gpus ?? 0}</Fact>
        <Fact name="age">{age(gang.created, now)}</Fact>
        {gang.waitingSince && <Fact name="waits for">{age(gang.waitingSince, now)}</Fact>}
        <Fact name="where">
          <a href={formatRoute("map", { gang: gang.key })}>
            {gang.spread || "what each domain lacks, on the map"}
          </a>
        </Fact>
      </dl>
      {waits(gang) && <Why gang={key} reason={gang.reason ?? ""} />}
      <div class="columns">
        <Timeline page={page.value} now={now} />
        <Members page={page.value} />
      </div>
      <Objects gang={key} />
    </article>
  );
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Why({ gang, reason }: { gang: string; reason: string }) {
  const [asked, ask] = useState(0);
  const why = useFetched(gang, `${reason}:${asked}`, () => api.why(gang));
  const answer = why.value?.answer;
  return (
    <section class="panel" aria-label="Why it waits" aria-busy={why.busy}>
      <h3>
        Why it waits{" "}
        <button type="button" onClick={() => ask(asked + 1)} disabled={why.busy}>
          ask again
        </button>
      </h3>
      {why.problem && <Problem>{why.problem}</Problem>}
      {!answer && why.busy && <p class="dim">trying what would help, on a copy of the cluster…</p>}
      {answer && (
        <>
          <ul>
            {[...(answer.history ?? []), ...(answer.sentences ?? [])].map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
          {reason && <p>{reason}</p>}
          {(answer.recorded ?? []).length > 0 && (
            <>
              <h4>What the cluster recorded</h4>
              <ul>
                {(answer.recorded ?? []).map((text) => (
                  <li key={text}>{text}</li>
                ))}
              </ul>
            </>
          )}
          <h4>What would help</h4>
          {(answer.remedies ?? []).length === 0 && !answer.startsAnyway && (
            <p class="dim">Nothing that was tried lets it start.</p>
          )}
          <ol class="remedies">
            {(answer.remedies ?? []).map((remedy) => (
              <li key={textOf(remedy)}>
                {textOf(remedy)} <span class="proof">tried: it starts</span>
                <Price remedy={remedy} />
                <Commands remedy={remedy} />
              </li>
            ))}
          </ol>
          <Domains why={why.value!} />
          {(why.value?.texts ?? []).length > 0 && (
            <details>
              <summary>Every detail</summary>
              <div class="texts">{(why.value?.texts ?? []).join("\n")}</div>
            </details>
          )}
          <p class="dim">
            {count(answer.tried ?? 0, "changed cluster")} tried by the production scheduler
            {answer.exhausted === false ? "; the search ended early" : ""}. Nothing was written.
          </p>
        </>
      )}
    </section>
  );
}

function textOf(remedy: Remedy): string {
  return remedy.changes.map((change) => change.text).join(", and ");
}

function Commands({ remedy }: { remedy: Remedy }) {
  const commands = remedy.changes.flatMap((change) => (change.command ? [change.command] : []));
  return commands.length > 0 ? <div class="texts">{commands.join("\n")}</div> : null;
}

function Price({ remedy }: { remedy: Remedy }) {
  const { evicted = [], delayed = [] } = remedy.price ?? {};
  const larger =
    remedy.smallest === false ? " less may be enough: the search stopped before that was tried" : "";
  if (evicted.length + delayed.length === 0) return larger ? <span class="dim">{larger}</span> : null;
  return (
    <span class="dim">
      {larger && `${larger};`} costs:
      {evicted.length > 0 &&
        ` evicts ${evicted.slice(0, 3).join(", ")}${evicted.length > 3 ? " and more" : ""}`}
      {delayed.length > 0 &&
        ` delays ${delayed.slice(0, 3).join(", ")}${delayed.length > 3 ? " and more" : ""}`}
    </span>
  );
}

function Domains({ why }: { why: { domains?: import("../types").DomainReport[] } }) {
  const domains = (why.domains ?? []).slice(0, 5);
  if (domains.length === 0) return null;
  return (
    <table>
      <caption>The nearest misses</caption>
      <thead>
        <tr>
          <th>{domains[0]!.level}</th>
          <th>fits</th>
          <th>lacks</th>
        </tr>
      </thead>
      <tbody>
        {domains.map((report) => (
          <tr key={report.domain}>
            <td>{report.domain || "all nodes"}</td>
            <td>
              {report.fits} of {report.needed}
            </td>
            <td>
              {(report.shortages ?? []).map((each) => shortage(each.resource, each.amount)).join(", ") ||
                (report.possible === false ? "too small, even when empty" : "")}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Timeline({ page, now }: { page: Page; now: number }) {
  return (
    <section>
      <h3>Timeline</h3>
      <ol class="timeline">
        {page.moments.map((moment) => (
          <li
            key={`${moment.at}${moment.what}${moment.text}`}
            class={`moment-${moment.what.replace(/[^a-z]/g, "-")}`}
          >
            <time dateTime={moment.at}>{dayTime(moment.at, now)}</time> <strong>{moment.what}</strong>
            {moment.by && <span> by {moment.by}</span>}
            {moment.text && <span class="dim"> {moment.text}</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Members({ page }: { page: Page }) {
  return (
    <section class="grow">
      <h3>Members</h3>
      <Scrolled label="Members">
        <table>
          <thead>
            <tr>
              <th>Pod</th>
              <th>Group</th>
              <th>Status</th>
              <th>Node</th>
              <th>GPUs</th>
            </tr>
          </thead>
          <tbody>
            {page.members.slice(0, SHOWN).map((member) => (
              <tr key={member.name}>
                <th scope="row">{member.name}</th>
                <td>{member.group}</td>
                <td>{member.ready ? "Ready" : member.status}</td>
                <td>
                  {member.node && <a href={formatRoute("map", { node: member.node })}>{member.node}</a>}
                </td>
                <td>{member.gpus ?? 0}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolled>
      {page.members.length > SHOWN && (
        <p class="dim">
          The first {SHOWN} of {page.members.length} are shown.
        </p>
      )}
    </section>
  );
}

function Objects({ gang }: { gang: string }) {
  const [open, setOpen] = useState(false);
  const text = useFetched(open ? gang : "", "", () => (open ? api.objects(gang) : Promise.resolve("")));
  return (
    <details class="objects" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Objects as YAML</summary>
      {text.problem && <Problem>{text.problem}</Problem>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled with the keyboard */}
      <pre tabIndex={0}>{text.value || (text.busy ? "reading…" : "")}</pre>
    </details>
  );
}
