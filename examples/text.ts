// Figures for people.

export function count(n: number): string {
  return n.toLocaleString('en-US');
}

export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB'];
  let unit = 0;
  let value = n;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

export function ms(n: number): string {
  return n < 10 ? `${n.toFixed(2)} ms` : `${count(Math.round(n))} ms`;
}

/** Rows as columns; all but the first column to the right. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  return rows.map((row) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('   '),
  );
}
