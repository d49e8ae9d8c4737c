// Two policies are compared where they cost the same.

export interface Point {
  /** What it costs: idle instance-seconds. */
  readonly idle: number;
  /** What it misses: cold starts. */
  readonly cold: number;
}

/**
 * Cold starts that a family of settings comes to at this cost: on the lower hull of its points, since between two settings
 * one can use the first for some of the time and the second for the rest. Undefined outside its range.
 */
export function coldAt(points: readonly Point[], idle: number): number | undefined {
  const hull: Point[] = [];
  for (const point of [...points].sort((a, b) => a.idle - b.idle || a.cold - b.cold)) {
    while (hull.length >= 2 && !isBelow(hull.at(-2) as Point, hull.at(-1) as Point, point)) hull.pop();
    hull.push(point);
  }
  for (let at = 1; at < hull.length; at++) {
    const [from, to] = [hull[at - 1] as Point, hull[at] as Point];
    if (idle < from.idle || idle > to.idle) continue;
    return from.cold + ((to.cold - from.cold) * (idle - from.idle)) / (to.idle - from.idle || 1);
  }
  return undefined;
}

/** Whether `middle` lies below the line from `first` to `last`. */
function isBelow(first: Point, middle: Point, last: Point): boolean {
  const line = first.cold + ((last.cold - first.cold) * (middle.idle - first.idle)) / (last.idle - first.idle || 1);
  return middle.cold < line;
}
