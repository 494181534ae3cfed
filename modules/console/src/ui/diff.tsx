// What differs between two texts, line by line.
import type { JSX } from 'preact';
import { show } from '../text';

/** most bounds the work of a comparison, in pairs of lines. */
const most = 4_000_000;

/** compare marks the lines of two texts: those of the first alone with "-", of the second alone with "+". */
function compare(before: string[], after: string[]): string[] {
  if (before.length * after.length > most) return [...before.map(l => `-${l}`), ...after.map(l => `+${l}`)];
  const width = after.length + 1;
  const common = new Uint32Array((before.length + 1) * width); // lengths of the longest common rests
  const rest = (i: number, j: number): number => common[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      common[i * width + j] = before[i] === after[j] ? rest(i + 1, j + 1) + 1 : Math.max(rest(i + 1, j), rest(i, j + 1));
    }
  }
  const marked: string[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      marked.push(` ${before[i++] ?? ''}`);
      j++;
    } else if (j >= after.length || (i < before.length && rest(i + 1, j) >= rest(i, j + 1))) marked.push(`-${before[i++] ?? ''}`);
    else marked.push(`+${after[j++] ?? ''}`);
  }
  return marked;
}

/** Diff shows marked lines. */
export const Diff = ({ lines }: { lines: string[] }): JSX.Element => (
  <pre class="diff" tabIndex={0} aria-label="Changes">{lines.map((line, i) => <span key={i} class={line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : ''}>{show(line, 2000)}{'\n'}</span>)}</pre>
);

const written = (value: unknown): string[] => (value === null || value === undefined ? [] : typeof value === 'string' ? value : JSON.stringify(value, null, 2)).toString().split('\n').filter((line, _, all) => line || all.length > 1);

/** ValueDiff shows how a value changed. */
export const ValueDiff = ({ before, after }: { before: unknown; after: unknown }): JSX.Element => <Diff lines={compare(written(before), written(after))} />;
