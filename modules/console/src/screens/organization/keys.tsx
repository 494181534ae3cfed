// The API keys of everybody in the organization.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { can, useMe } from '../../session';
import { show } from '../../text';
import type { ApiKey } from '../../types';
import { Empty } from '../../ui/basics';
import { KeyList } from '../keys';
import { Who } from './audit';

/** Owner asks for whom a new key is. */
function Owner(): JSX.Element {
  const [kind, setKind] = useState('organization');
  return (
    <>
      <label for="owner">For</label>
      <select id="owner" name="owner" value={kind} onChange={event => { setKind(event.currentTarget.value); }}>
        <option value="organization">the organization: a service</option><option value="group_name">a group</option><option value="user_id">a user</option>
      </select>
      {kind !== 'organization' && <><label for="ownername">{kind === 'user_id' ? 'Id of the user' : 'Name of the group'}</label><input id="ownername" name="ownername" required autocomplete="off" /></>}
    </>
  );
}

function owned(fields: FormData): Record<string, string> {
  const kind = String(fields.get('owner'));
  return kind === 'organization' ? {} : { [kind]: String(fields.get('ownername')).trim() };
}

function ownerOf(key: ApiKey): JSX.Element {
  if (key.user_id) return <Who id={key.user_id} />;
  return key.group_name ? <>group {show(key.group_name, 60)}</> : <span class="whole">the organization</span>;
}

export function OrganizationKeys(): JSX.Element {
  const administers = can(useMe().data, 'administer');
  return (
    <KeyList address="/api/llm-gateway/admin/api-keys" title="API keys" label="API keys" about="The keys with which programs call models, of everybody."
      empty={<Empty icon="keys" title="Nobody has a key"><p>Users make theirs themselves. Make one here for a service, which is no user.</p></Empty>}
      whose={{ cell: ownerOf, fields: <Owner />, read: owned, administers }} />
  );
}
