// A plot over time, drawn by uPlot. Its colours follow the scheme, and a table beside it says the same in numbers.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useDark } from "./hooks";

export interface Curve {
  label: string;
  colour: [light: string, dark: string];
  dash?: number[];
  values: (number | null)[];
}

export function Plot({
  times,
  curves,
  unit,
  label,
  hours = false,
}: {
  times: number[];
  curves: Curve[];
  unit: string;
  label: string;
  /** True: times are hours since the beginning, not moments. */
  hours?: boolean;
}) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const dark = useDark();
  const names = curves.map((curve) => curve.label).join("|");
  useEffect(() => {
    const ink = dark ? "#b6c2cf" : "#4a5561";
    const line = dark ? "#2c3640" : "#e3e8ed";
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const made = new uPlot(
      {
        width: place.current!.clientWidth || 400,
        height: 220,
        series: [
          { label: hours ? "hours" : "time" },
          ...curves.map((curve) => ({
            label: curve.label,
            stroke: curve.colour[dark ? 1 : 0],
            width: 2,
            ...(curve.dash ? { dash: curve.dash } : {}),
            spanGaps: false,
          })),
        ],
        axes: [axis, { ...axis, label: unit, size: 56 }],
        scales: { x: { time: !hours }, y: { range: (_, __, most) => [0, Math.max(1, (most || 0) * 1.08)] } },
      },
      [times, ...curves.map((curve) => curve.values)],
      place.current!,
    );
    plot.current = made;
    const watching = new ResizeObserver(() =>
      made.setSize({ width: place.current?.clientWidth || 400, height: 220 }),
    );
    watching.observe(place.current!);
    return () => {
      watching.disconnect();
      made.destroy();
    };
  }, [dark, names, unit]);
  useEffect(() => {
    plot.current?.setData([times, ...curves.map((curve) => curve.values)]);
  });
  return <div ref={place} class="plot" role="img" aria-label={label} />;
}
