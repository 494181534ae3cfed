// What differs between two runs of the same probes, and how it is written instead.
import { createHash } from 'node:crypto';

const patterns = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>'],
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?/g, '<time>'],
  [/\b\d{1,2}:\d\d:\d\d [AP]M\b/g, '<time>'],
  [/\b[0-9a-f]{32}\b/g, '<hex>'],
];

// Members that hold an id or a number of the run; and a list that a policy may filter is private.
const members = {
  cacheScope: '<scope>', taskId: '<task>', progressToken: '<token>', elicitationId: '<elicitation>', 'io.modelcontextprotocol/subscriptionId': '<subscription>', requestState: '<state>',
};

// masker returns the function that masks what a probe has found.
export function masker(plan, session) {
  const here = new URL(plan.url);
  const own = (plan.mask ?? []).map(text => new RegExp(text, 'g'));
  const text = value => {
    const id = session(); // the gateway's; the server's own, in what it says, is a UUID
    if (id) value = value.replaceAll(id, '<uuid>');
    value = value.replaceAll(here.href, '<url>').replaceAll(here.origin, '<origin>').replaceAll(here.host, '<host>');
    for (const [pattern, instead] of patterns) value = value.replace(pattern, instead);
    for (const pattern of own) value = value.replace(pattern, '<masked>');
    if (value.length > 4_000) value = `<${value.length} characters, SHA-256 ${createHash('sha256').update(value).digest('hex')}>`;
    return value;
  };
  const mask = value => {
    if (typeof value === 'string') return text(value);
    if (Array.isArray(value)) return value.map(mask);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [text(name), members[name] ?? mask(member)]));
  };
  return mask;
}
