// The zoomable map: cells are painted as pixels, boxes and names over them by the canvas.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { palette } from "../colours";
import { useDark } from "../hooks";
import type { NodeRow } from "../types";
import { type ColourBy, coloured } from "./cells";
import { type Box, type Layout, layOut } from "./layout";
import { measured } from "./measuring";
import { type Camera, fitted, nearest, nodeAt, paint, zoomed } from "./raster";

export interface Light {
  text: string;
  tone: "good" | "near" | "never";
}

export interface MapCanvasProps {
  rows: NodeRow[];
  levels: number;
  by: ColourBy;
  /** The gang whose cells stand out. */
  only?: string;
  selected?: string;
  /** Domains that light up, by their path joined with slashes. */
  lights?: Map<string, Light>;
  label: string;
  onHover?: (node: string | null, x: number, y: number) => void;
  onPick?: (node: string) => void;
}

/** Returns what changes the layout: names, places and sizes of nodes, but not who holds them. */
function shapeOf(rows: NodeRow[], levels: number): string {
  let text = `${levels}`;
  for (const row of rows) text += `|${row.name}:${row.cells ?? 0}:${row.path?.join("/") ?? ""}`;
  return text;
}

export function MapCanvas(props: MapCanvasProps) {
  const { rows, levels, by, only = "", selected = "", lights, label } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const camera = useRef<Camera | null>(null);
  const moved = useRef(false);
  const dark = useDark();
  const shape = useMemo(() => shapeOf(rows, levels), [rows, levels]);
  const layout = useMemo(() => {
    moved.current = false;
    const box = canvas.current?.getBoundingClientRect();
    const shape = box?.height
      ? box.width / box.height
      : Math.min(1.6, window.innerWidth / window.innerHeight);
    return layOut(rows, levels, shape);
  }, [shape]);
  const colours = useMemo(() => palette(dark), [dark]);
  const cells = useMemo(() => coloured(rows, layout, by, colours, only), [rows, layout, by, colours, only]);
  const scene = { rows, layout, cells, colours, selected, lights };
  const latest = useRef(scene);
  latest.current = scene;
  const frame = useRef(0);

  const draw = () => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => {
      const element = canvas.current;
      if (!element) return;
      const began = performance.now();
      drawScene(element, latest.current, camera, moved.current);
      measured(began);
    });
  };

  useEffect(draw);
  useEffect(() => {
    const watching = new ResizeObserver(draw);
    watching.observe(canvas.current!);
    return () => watching.disconnect();
  }, []);

  const move = (change: (camera: Camera) => Camera) => {
    if (!camera.current) return;
    camera.current = change(camera.current);
    moved.current = true;
    draw();
  };
  const fit = () => {
    moved.current = false;
    draw();
  };
  const at = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const under = (event: MouseEvent) => {
    const { x, y } = at(event);
    const place = camera.current ? nodeAt(layout, camera.current, x, y) : -1;
    return place < 0 ? null : layout.names[place]!;
  };

  const drag = useRef<{ x: number; y: number; far: boolean } | null>(null);
  const fingers = useRef(new Map<number, { x: number; y: number }>());

  const down = (event: PointerEvent) => {
    canvas.current!.setPointerCapture(event.pointerId);
    fingers.current.set(event.pointerId, at(event));
    drag.current = { ...at(event), far: false };
  };
  const slide = (event: PointerEvent) => {
    const here = at(event);
    const held = fingers.current.get(event.pointerId);
    if (!held) {
      props.onHover?.(under(event), here.x, here.y);
      return;
    }
    const others = [...fingers.current].filter(([id]) => id !== event.pointerId);
    const other = others[0]?.[1];
    if (other) {
      const before = Math.hypot(held.x - other.x, held.y - other.y);
      const after = Math.hypot(here.x - other.x, here.y - other.y);
      if (before > 0)
        move((now) => zoomed(now, after / before, (here.x + other.x) / 2, (here.y + other.y) / 2));
    } else {
      const dx = here.x - held.x;
      const dy = here.y - held.y;
      move((now) => ({ ...now, x: now.x - dx / now.scale, y: now.y - dy / now.scale }));
    }
    const from = drag.current;
    if (from && Math.hypot(here.x - from.x, here.y - from.y) > 4) from.far = true;
    fingers.current.set(event.pointerId, here);
  };
  const up = (event: PointerEvent) => {
    fingers.current.delete(event.pointerId);
    const name = drag.current?.far ? null : under(event);
    drag.current = null;
    if (name) props.onPick?.(name);
  };
  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    const { x, y } = at(event);
    move((now) => zoomed(now, Math.exp(-event.deltaY * 0.0015), x, y));
  };
  useEffect(() => {
    const element = canvas.current!;
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });

  const key = (event: KeyboardEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const step = 60;
    const pans: Record<string, [number, number]> = {
      ArrowLeft: [-step, 0],
      ArrowRight: [step, 0],
      ArrowUp: [0, -step],
      ArrowDown: [0, step],
    };
    const pan = pans[event.key];
    if (pan) move((now) => ({ ...now, x: now.x + pan[0] / now.scale, y: now.y + pan[1] / now.scale }));
    else if (event.key === "+" || event.key === "=")
      move((now) => zoomed(now, 1.4, box.width / 2, box.height / 2));
    else if (event.key === "-") move((now) => zoomed(now, 1 / 1.4, box.width / 2, box.height / 2));
    else if (event.key === "0") fit();
    else if (event.key === "Enter" && camera.current) {
      const place = nearest(layout, camera.current, box.width / 2, box.height / 2);
      if (place >= 0) props.onPick?.(layout.names[place]!);
    } else return;
    event.preventDefault();
  };
  const zoom = (factor: number) => () => {
    const box = canvas.current!.getBoundingClientRect();
    move((now) => zoomed(now, factor, box.width / 2, box.height / 2));
  };

  return (
    <div class="map">
      {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: keys reach an application, and no image */}
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-roledescription="map"
        aria-label={`${label} Arrow keys move the map, plus and minus zoom, 0 shows all of it${props.onPick ? ", Enter chooses the node nearest to the middle" : ""}.`}
        onPointerDown={down}
        onPointerMove={slide}
        onPointerUp={up}
        onPointerCancel={up}
        onPointerLeave={() => props.onHover?.(null, 0, 0)}
        onKeyDown={key}
      />
      {props.onPick && <span class="middle" aria-hidden="true" />}
      <div class="zoom">
        <button type="button" onClick={zoom(1.4)} aria-label="Zoom in" title="Zoom in">
          +
        </button>
        <button type="button" onClick={zoom(1 / 1.4)} aria-label="Zoom out" title="Zoom out">
          −
        </button>
        <button type="button" onClick={fit} aria-label="Show all" title="Show all">
          ⤢
        </button>
      </div>
    </div>
  );
}

interface Scene {
  rows: NodeRow[];
  layout: Layout;
  cells: ReturnType<typeof coloured>;
  colours: ReturnType<typeof palette>;
  selected: string;
  lights: Map<string, Light> | undefined;
}

function drawScene(
  element: HTMLCanvasElement,
  scene: Scene,
  camera: { current: Camera | null },
  moved: boolean,
): void {
  const { width, height } = element.getBoundingClientRect();
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const [wide, high] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (element.width !== wide || element.height !== high) {
    element.width = wide;
    element.height = high;
  }
  if (!camera.current || !moved) camera.current = fitted(scene.layout, width, height);
  const view = camera.current;
  const context = element.getContext("2d", { alpha: false })!;
  const image = context.createImageData(wide, high);
  const pixels = new Uint32Array(image.data.buffer);
  const scaled = { ...view, scale: view.scale * ratio };
  paint(pixels, wide, high, scene.layout, scene.cells, scaled, scene.colours.background);
  context.putImageData(image, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawBoxes(context, scene, view, width, height);
  drawNames(context, scene, view, width, height);
  context.setTransform(1, 0, 0, 1, 0, 0);
}

const TONES = {
  good: ["#1a7f37", "#4ac26b"],
  near: ["#9a6700", "#e3b341"],
  never: ["#82808a", "#7d8590"],
} as const;

function drawBoxes(
  context: CanvasRenderingContext2D,
  scene: Scene,
  view: Camera,
  width: number,
  height: number,
): void {
  const dark = scene.colours.dark;
  const line = dark ? "#3d4854" : "#c4ccd4";
  const ink = dark ? "#b6c2cf" : "#4a5561";
  for (const box of scene.layout.boxes) {
    const x = (box.x - view.x) * view.scale;
    const y = (box.y - view.y) * view.scale;
    const wide = box.width * view.scale;
    const high = box.height * view.scale;
    if (x > width || y > height || x + wide < 0 || y + high < 0 || wide < 6) continue;
    const light = scene.lights?.get(box.path.join("/"));
    context.strokeStyle = light ? TONES[light.tone][dark ? 1 : 0] : line;
    context.lineWidth = light ? 2.5 : 1;
    if (wide > 14)
      context.strokeRect(Math.round(x) + 0.5, Math.round(y) + 0.5, Math.round(wide), Math.round(high));
    title(context, box, light, x, y, wide, view, ink, dark);
  }
}

function title(
  context: CanvasRenderingContext2D,
  box: Box,
  light: Light | undefined,
  x: number,
  y: number,
  wide: number,
  view: Camera,
  ink: string,
  dark: boolean,
): void {
  const size = Math.min(14, Math.max(10, view.scale * 1.1));
  if (view.scale * 1.8 < 9 || wide < 26) return;
  context.font = `${light ? "600 " : ""}${size}px system-ui, sans-serif`;
  context.fillStyle = light ? TONES[light.tone][dark ? 1 : 0] : ink;
  context.textBaseline = "top";
  const text = clipped(
    context,
    light ? `${box.name || "no name"}: ${light.text}` : box.name || "no name",
    wide - 8,
  );
  context.fillText(text, x + 5, y + Math.max(2, view.scale * 0.5));
}

function drawNames(
  context: CanvasRenderingContext2D,
  scene: Scene,
  view: Camera,
  width: number,
  height: number,
): void {
  const { layout, selected, colours } = scene;
  const named = view.scale >= 26;
  for (let node = 0; node < layout.x.length; node++) {
    const chosen = selected && layout.names[node] === selected;
    if (!named && !chosen) continue;
    const x = (layout.x[node]! - view.x) * view.scale;
    const y = (layout.y[node]! - view.y) * view.scale;
    const wide = layout.columns[node]! * view.scale;
    const high = Math.max(1, Math.ceil(layout.cells[node]! / layout.columns[node]!)) * view.scale;
    if (x > width || y > height || x + wide < 0 || y + high < 0) continue;
    if (chosen) {
      context.strokeStyle = colours.dark ? "#ffffff" : "#111111";
      context.lineWidth = 2;
      context.strokeRect(x - 2, y - 2, wide + 3, high + 3);
    }
    if (named) {
      context.font = "11px system-ui, sans-serif";
      context.textBaseline = "middle";
      const text = clipped(context, layout.names[node]!, wide - 8);
      const long = context.measureText(text).width;
      context.fillStyle = colours.dark ? "#11161ccc" : "#fbfcfdcc";
      context.fillRect(x + 2, y + high / 2 - 8, long + 6, 16);
      context.fillStyle = colours.dark ? "#e6edf3" : "#1f2328";
      context.fillText(text, x + 5, y + high / 2);
    }
  }
}

function clipped(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let short = text;
  while (short.length > 1 && context.measureText(`${short}…`).width > room) short = short.slice(0, -1);
  return `${short}…`;
}
