// Small parts that several pages show.
import { Component, type ComponentChildren } from "preact";
import { hueOf } from "./colours";
import { useDark } from "./hooks";
import { formatRoute } from "./route";

export function GangLink({ gang }: { gang: string }) {
  if (!gang) return <span class="dim">in no gang</span>;
  const name = gang.split("/").slice(2).join("/");
  return (
    <span class="gang">
      <Swatch name={gang} />{" "}
      <a href={formatRoute("gang", { key: gang })} title={gang}>
        {name}
      </a>
    </span>
  );
}

export function Swatch({ name }: { name: string }) {
  const dark = useDark();
  return <span class="swatch" style={{ background: hueOf(name, dark) }} aria-hidden="true" />;
}

export function StateWord({ state }: { state: string }) {
  return <span class={`state state-${/^[a-z]+$/.test(state) ? state : "other"}`}>{state}</span>;
}

export function Problem({ children }: { children: ComponentChildren }) {
  return (
    <p class="problem" role="alert">
      {children}
    </p>
  );
}

/** Says why what is inside cannot be shown, until another place is looked at; what is around it goes on. */
export class Attempt extends Component<
  { at: string; children: ComponentChildren },
  { at: string; problem: string }
> {
  override state = { at: this.props.at, problem: "" };

  static override getDerivedStateFromError(error: Error) {
    return { problem: `This cannot be shown: ${error.message}.` };
  }

  static override getDerivedStateFromProps(props: { at: string }, state: { at: string }) {
    return props.at === state.at ? null : { at: props.at, problem: "" };
  }

  override render() {
    return this.state.problem ? <Problem>{this.state.problem}</Problem> : this.props.children;
  }
}

export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child
    <label class="field">
      <span>{label}</span>
      {children}
    </label>
  );
}

/** What may be wider or longer than its place, and is then scrolled, with the keyboard, too. */
export function Scrolled({
  label,
  short,
  children,
}: {
  label: string;
  short?: boolean;
  children: ComponentChildren;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled with the keyboard
    <section class={short ? "scroll short" : "scroll"} tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}
