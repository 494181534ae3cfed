// Limits that are nearly full.
import type { Limits } from '../types';

/** full is the share from which a limit needs its user, in percent. */
const full = 80;

export interface NearFull {
  id: string;
  name: string;
  percent: number;
  text: string;
}

/** nearFull lists the limits and budgets that are nearly full, with the numbers of the counters that enforce them. */
export function nearFull(limits: Limits | undefined): NearFull[] {
  const rates = (limits?.rate_limits ?? []).map(l => ({
    id: l.id, name: l.name, percent: Math.round(Math.max(l.rpm_percentage, l.tpm_percentage)),
    text: l.rpm_percentage >= l.tpm_percentage ? `${l.rpm_used} of ${l.rpm_limit ?? 0} requests in the last minute${l.shared ? ', with others' : ''}.` : `${l.tpm_used} of ${l.tpm_limit ?? 0} tokens in the last minute${l.shared ? ', with others' : ''}.`,
  }));
  const budgets = (limits?.budgets ?? []).map(b => ({
    id: b.id, name: b.name, percent: b.amount > 0 ? Math.round((b.spent + b.reserved) / b.amount * 100) : 0,
    text: `$${b.spent.toFixed(2)} of $${b.amount.toFixed(2)} is spent (${b.period}).`,
  }));
  return [...rates, ...budgets].filter(l => l.percent >= full);
}
