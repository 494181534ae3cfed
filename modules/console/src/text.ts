// Text of others, so that everything in it is seen.

const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Cn}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800]|(?! )\p{Zs}/gu;

/** show writes a text with its misleading characters spelled out, and cuts it when it is very long. */
export function show(text: string | null | undefined, limit = 200): string {
  if (!text) return '';
  const characters = [...text.slice(0, limit * 2 + 2)];
  const shown = characters.slice(0, limit).join('')
    .replace(hidden, c => `⟨U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
  return characters.length > limit ? `${shown}… (${text.length.toLocaleString('en')} characters)` : shown;
}

/** words writes a name of the API as words: out_of_band as "out of band". */
export const words = (name: string): string => show(name.replaceAll('_', ' '));

/** count writes a number with its noun. */
export const count = (n: number, one: string, many = `${one}s`): string => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
