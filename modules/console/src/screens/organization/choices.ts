// Rules as choices for each tool, and back. Rules that say more than that stay as they were written.
import type { Rule } from '../../organization';

export type Verdict = 'allow' | 'ask' | 'deny';

/** Choice is a decision on one tool for the callers with one of some roles or groups; "*" is every caller. */
export interface Choice {
  tool: string;
  verdict: Verdict;
  who: string;
}

const call = /^tools\/call:([A-Za-z0-9_./*-]+?)(:approve)?$/;

/** plain reports whether a rule only names tools and callers, so that choices can stand for it. */
function plain(rule: Rule): boolean {
  return rule.active !== false && rule.condition === undefined && rule.approval === undefined && !rule.description
    && (rule.actions?.length ?? 0) > 0 && (rule.actions ?? []).every(a => call.test(a)) && (rule.roles_groups?.length ?? 1) > 0;
}

/** choicesOf divides rules into choices and the rest. */
export function choicesOf(rules: Rule[]): { choices: Choice[]; rest: Rule[] } {
  const choices: Choice[] = [];
  const rest: Rule[] = [];
  for (const rule of rules) {
    if (!plain(rule)) {
      rest.push(rule);
      continue;
    }
    for (const action of rule.actions ?? []) {
      const [, tool = '', asks] = call.exec(action) ?? [];
      choices.push({ tool, verdict: !rule.authorized ? 'deny' : asks ? 'ask' : 'allow', who: (rule.roles_groups ?? ['*']).join(', ') });
    }
  }
  return { choices, rest };
}

const verbs: Record<Verdict, string> = { allow: 'may call', ask: 'may call when they agree', deny: 'may not call' };

/** rulesOf writes choices as rules: one for each decision and its callers. The rest stands behind them. */
export function rulesOf(choices: Choice[], rest: Rule[]): Rule[] {
  const grouped = new Map<string, Choice[]>();
  for (const c of choices) grouped.set(`${c.verdict} ${c.who}`, [...grouped.get(`${c.verdict} ${c.who}`) ?? [], c]);
  const rules = [...grouped.values()].map((same): Rule => {
    const [{ verdict, who }] = same as [Choice];
    const callers = who.split(',').map(w => w.trim()).filter(Boolean);
    const everybody = callers.length === 0 || callers.includes('*');
    return {
      name: `${everybody ? 'everybody' : callers.join(', ')} ${verbs[verdict]}`.slice(0, 200), authorized: verdict !== 'deny',
      actions: [...new Set(same.map(c => `tools/call:${c.tool}${verdict === 'ask' ? ':approve' : ''}`))],
      ...(everybody ? {} : { roles_groups: callers }),
    };
  });
  return [...rules, ...rest];
}

/** Parsed is the outcome of reading a text as rules; line is where it went wrong. */
export type Parsed = { rules: Rule[] } | { error: string; line: number };

/** parse reads a text as a list of rules. The gateway checks the rest when it is saved. */
export function parse(text: string): Parsed {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (failed) {
    const message = failed instanceof Error ? failed.message : String(failed);
    const [, at] = /position (\d+)/.exec(message) ?? [];
    return { error: message, line: at === undefined ? text.split('\n').length : text.slice(0, Number(at)).split('\n').length };
  }
  if (!Array.isArray(value) || !value.every(r => typeof r === 'object' && r !== null && typeof (r as Rule).authorized === 'boolean')) {
    return { error: 'This is no list of rules: each needs "name" and "authorized".', line: 1 };
  }
  return { rules: value as Rule[] };
}

/** write writes rules as the text that people edit, without what the gateway fills in. */
export const write = (rules: Rule[]): string => JSON.stringify(rules.map(r => {
  const { active, roles_groups: who, description, ...whole } = r;
  return {
    ...whole, ...(active === false ? { active } : {}), ...(who && !(who.length === 1 && who[0] === '*') ? { roles_groups: who } : {}), ...(description ? { description } : {}),
  };
}), null, 2);
