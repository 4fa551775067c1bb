// How long drawings of the map took, for whoever looks with the browser's tools.

/** So many are kept; the browser itself would keep all of them, for as long as the page is open. */
export const KEPT = 1000;
let drawn = 0;

/** Notes a drawing that began at a time of `performance.now()` and has just ended. */
export function measured(began: number): void {
  if (drawn++ % KEPT === 0) performance.clearMeasures("map-draw");
  performance.measure("map-draw", { start: began });
}
