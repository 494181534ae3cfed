// The colours that the reader chose for this browser. A script of its own, which runs before the page is drawn: what it draws
// first has the colours already.

/** Theme is light, dark, or "": as the system. */
export type Theme = 'light' | 'dark' | '';

const key = 'theme';

/** chosenTheme returns what the reader chose. A browser that keeps nothing for the page has the system's. */
export function chosenTheme(): Theme {
  try {
    const kept = localStorage.getItem(key);
    return kept === 'light' || kept === 'dark' ? kept : '';
  } catch {
    return '';
  }
}

/** chooseTheme keeps a choice, and shows it. */
export function chooseTheme(theme: Theme): void {
  try {
    if (theme) localStorage.setItem(key, theme); else localStorage.removeItem(key);
  } catch {
    // It holds until the page is left.
  }
  showTheme(theme);
}

function showTheme(theme: Theme): void {
  if (theme) document.documentElement.dataset['theme'] = theme; else delete document.documentElement.dataset['theme'];
}

showTheme(chosenTheme());
