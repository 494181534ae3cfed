// A chart of sums over time. The same numbers stand in a table below it.
import type { JSX } from 'preact';
import { Table } from './table';

export interface Bar {
  at: string;
  value: number;
}

const [width, height, room] = [800, 180, 60];

/** round raises a number to one that reads well at an axis. */
function round(n: number): number {
  const size = 10 ** Math.floor(Math.log10(n || 1));
  return [1, 2, 4, 6, 8, 10].map(f => f * size).find(top => top >= n) ?? n;
}

/** Chart draws a bar for each span. written writes a value, named the span's time. */
export function Chart({ label, bars, written, named }: { label: string; bars: Bar[]; written: (n: number) => string; named: (at: string) => string }): JSX.Element {
  const top = round(Math.max(...bars.map(b => b.value), 0));
  const step = (width - room) / Math.max(bars.length, 1);
  const y = (value: number): number => height - 24 - (value / top) * (height - 40);
  const each = Math.ceil(bars.length / 8);
  return (
    <div class="chart panel">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${label}: ${written(bars.reduce((sum, b) => sum + b.value, 0))} in all`}>
        {[0, 0.5, 1].map(part => <g key={part}><line x1={room} x2={width} y1={y(part * top)} y2={y(part * top)} /><text x={room - 8} y={y(part * top) + 4} text-anchor="end">{written(part * top)}</text></g>)}
        {bars.map((b, i) => (
          <g key={b.at}>
            <rect x={room + i * step + step * 0.1} width={step * 0.8} y={y(b.value)} height={y(0) - y(b.value)}><title>{`${named(b.at)}: ${written(b.value)}`}</title></rect>
            {i % each === 0 && i + each / 2 <= bars.length && <text x={room + (i + 0.5) * step} y={height - 6} text-anchor="middle">{named(b.at)}</text>}
          </g>
        ))}
      </svg>
      <details class="why">
        <summary>The same as a table</summary>
        <Table label={label} rows={bars} id={b => b.at} columns={[{ title: 'When', cell: b => named(b.at) }, { title: label, cell: b => written(b.value) }]} />
      </details>
    </div>
  );
}
