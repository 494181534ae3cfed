// The access tokens that this node refused, with the line of the configuration that would accept each.
import type { JSX } from 'preact';
import { useLoad } from '../../load';
import { show } from '../../text';
import { Empty, Problem, Screen, Tag, Waiting } from '../../ui/basics';
import { Code, Json } from '../../ui/code';
import { Time } from '../../ui/time';

interface Refused {
  at: string;
  from: string;
  path: string;
  signature_verified: boolean;
  claims: unknown;
  header?: Record<string, string>;
  reason: string;
  accepted_by: string;
  issuer?: string;
  advice: string;
}

export function RefusedTokens(): JSX.Element {
  const list = useLoad<{ tokens: Refused[] }>('/api/refused-tokens', 5);
  const tokens = list.data?.tokens;
  return (
    <Screen title="Refused tokens" about="The access tokens that the node which answers refused within the last hour. Nobody is logged in by a look at them.">
      {list.error && <Problem error={list.error} retry={() => { void list.reload(); }} />}
      {!tokens && !list.error && <Waiting />}
      {tokens?.length === 0 && <Empty icon="check" title="No token was refused"><p>If a client cannot log in, let it try again: what it sends appears here.</p></Empty>}
      {tokens && tokens.length > 0 && (
        <div class="cards one">
          {tokens.map(t => (
            <section class="card" key={`${t.at} ${t.path} ${t.reason}`}>
              <div class="cardhead"><h2>{show(t.reason, 300)}</h2>{t.signature_verified ? <Tag tone="good">Signed by its issuer</Tag> : <Tag tone="warning">May be made up</Tag>}</div>
              <p class="small"><Time at={t.at} />, from <span class="mono">{show(t.from, 60)}</span>, to <span class="mono">{show(t.path, 200)}</span></p>
              <p>{show(t.advice, 600)}</p>
              {t.accepted_by && <><p class="small">This line{t.issuer && <> in the identity <span class="mono">{show(t.issuer, 200)}</span></>} would accept it:</p><Code text={t.accepted_by} label="the line" /></>}
              <details class="why"><summary>What the token says</summary><Json name="claims" value={t.claims} />{t.header && <Json name="header" value={t.header} />}</details>
            </section>
          ))}
        </div>
      )}
    </Screen>
  );
}
