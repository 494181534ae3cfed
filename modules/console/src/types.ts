// The shapes of the API's answers that the console reads, as docs/openapi.json describes them.

/** Page is a page of a list that is numbered. */
export interface Page<T> {
  data: T[];
  pagination: { page: number; limit: number; total: number; pages: number; previous_page: number | null; next_page: number | null };
}

/** Right is a thing that a caller may do beside what every user may. */
export type Right = 'read_everything' | 'edit_policies' | 'operate_servers' | 'administer' | 'decide_approvals';

export interface Me {
  user: { id: string; name: string | null; email: string | null; issuer: string; subject: string; machine: boolean };
  organization: { id: string; slug: string | null };
  roles: string[];
  groups: string[];
  may: Right[];
}

/** Fixed is what the gateway's configuration fixed. */
export interface Fixed {
  identity_providers: { issuer: string; organization: string | null; audience: string[]; login_client: string | null; at: string | null }[];
  options: { option: string; values: string[]; given: boolean; at: string | null }[];
}

export interface Server {
  managed_by_file?: boolean;
  id: string;
  name: string;
  slug: string;
  status: string;
  connection_status: string;
  mcp_server_directory_id: string;
  /** provider is a name for people. */
  provider: string | null;
  proxy_url: string;
  scopes: string[];
  last_seen_at: string | null;
  last_error: string | null;
  url: string | null;
}

/** Entry is the entry of the directory of which a server was made. */
export interface Entry {
  id: string;
  name: string;
  description: string;
  provider: string;
  requires_auth: boolean;
}

export interface Approval {
  id: string;
  user_id: string;
  tool: string;
  client: string;
  mcp_server_id: string;
  status: 'pending' | 'approved' | 'denied' | 'expired' | 'used';
  rule: string;
  arguments: unknown;
  created_at: string;
  expires_at: string;
  decided_at: string | null;
}

export interface Session {
  id: string;
  client_id: string;
  client_name: string;
  resource: string;
  created_at: string;
  used_at: string;
  expires_at: string;
  current: boolean;
}

export interface Snippets {
  server: string;
  url: string;
  data: { client: string; name: string; text: string; where: string }[];
}

export interface RateLimit {
  id: string;
  name: string;
  scope_type: string;
  shared: boolean;
  traffic_type: string;
  rpm_limit: number | null;
  rpm_used: number;
  rpm_percentage: number;
  tpm_limit: number | null;
  tpm_used: number;
  tpm_percentage: number;
}

export interface Budget {
  id: string;
  name: string;
  amount: number;
  spent: number;
  reserved: number;
  period: string;
  scope_type: string;
  hard_stop: boolean;
}

export interface Limits {
  rate_limits: RateLimit[];
  budgets: Budget[];
}

export interface Call {
  id: string;
  time: string;
  event: string;
  decision: string | null;
  outcome: string | null;
  rule: string | null;
  policy_id: string | null;
  policy_revision: number | null;
  method: string | null;
  server: string | null;
  mcp_server_id: string | null;
  tool: string | null;
  client: string | null;
  approval_id: string | null;
  duration_ms: number | null;
  upstream_status: number | null;
  trace_id: string | null;
  detail: Record<string, unknown>;
}

export interface Calls {
  data: Call[];
  next_cursor: string | null;
  partial: boolean;
  searched_from: string | null;
}

/** Job is work that takes longer than a request. */
export interface Job<Result> {
  id: string;
  state: string;
  progress: { done: number; total: number };
  problem: string | null;
  result: Result | null;
}

export interface ApiKey {
  id: string;
  name: string;
  key_prefix: string;
  user_id: string | null;
  group_name: string | null;
  scopes: string[];
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  revoked_at: string | null;
  disabled: boolean;
}

export interface NewKey extends ApiKey {
  key: string;
}
