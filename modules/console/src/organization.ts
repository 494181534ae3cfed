// The shapes of the API's answers that administrators, auditors, operators and policy editors read.
import type { Server } from './types';

/** Keyed is a page of a list that is read by cursor. */
export interface Keyed<T> {
  data: T[];
  next_cursor: string | null;
}

export interface Entry {
  id: string;
  name: string;
  description: string;
  url: string;
  protocol: string;
  provider: string;
  categories: string[];
  /** organization_id is null for entries that durward ships or the configuration has. */
  organization_id: string | null;
}

export interface Test {
  reachable: boolean;
  authentication: string | null;
  issuer: string | null;
  error: string | null;
  message: string;
  revisions: string[];
  tools: number | null;
  transport: string | null;
}

export interface OrganizationServer extends Server {
  mcp_server_directory_id: string;
  created_at: string;
}

export interface ServerConnection {
  user_id: string;
  name: string | null;
  email: string | null;
  status: string;
  reason: string | null;
  scopes: string[];
  connected_at: string;
}

export interface Tool {
  name: string;
  changed: boolean;
  withheld: boolean;
  hash: string;
  diff: string;
  suspicious: string[];
  first_seen_at: string;
  changed_at: string | null;
}

export interface User {
  id: string;
  name: string | null;
  email: string | null;
  subject: string;
  issuer: string;
  kind: string;
  roles: string[] | null;
  groups: string[] | null;
  created_at: string;
  seen_at: string;
  revoked_at: string | null;
}

export interface Offboarding {
  sessions: number;
  api_keys: number;
  connections: number;
  streams: number;
  approvals: number;
  tasks: number;
}

export interface Agent {
  managed_by_file?: boolean;
  id: string;
  agent_type: string;
  approval_channel: string;
  write_confirmations_required: boolean;
  created_at: string;
  application_directory: { name: string; external_id: string; description: string; dcr: boolean };
}

export interface PolicyItem {
  managed_by_file?: boolean;
  id: string;
  name: string;
  mcp_server_id: string;
  mcp_server_name: string;
  application_names: string[];
  rules_count: number;
  status: string;
  updated_at: string;
  updated_by_user_name: string;
}

export interface Rule {
  name: string;
  authorized: boolean;
  active?: boolean;
  actions?: string[];
  roles_groups?: string[];
  condition?: unknown;
  description?: string;
  approval?: unknown;
}

export interface Policy extends PolicyItem {
  description: string;
  rules: Rule[];
  application_ids: string[];
  revision: number;
  shadow: boolean;
}

export interface Explanation {
  decision: string;
  reason: string;
  rule: string | null;
  certain: boolean;
  notes: string[];
  policy: { id: string; name: string; revision: number } | null;
  conditions: { rule: string; expr: string; value: unknown; error: string | null }[];
}

export interface BudgetSetting {
  managed_by_file?: boolean;
  id: string;
  name: string;
  scope_type: string;
  scope_id: string | null;
  scope_value: string | null;
  amount: number;
  spent: number;
  period: string;
  hard_stop: boolean;
  enabled: boolean;
}

export interface LimitStatus {
  policy: { managed_by_file?: boolean; id: string; name: string; scope_type: string; scope_id: string | null; scope_value: string | null; traffic_type: string; enabled: boolean };
  rpm_limit: number;
  rpm_used: number;
  rpm_percentage: number;
  tpm_limit: number;
  tpm_used: number;
  tpm_percentage: number;
  degraded: boolean;
}

export interface UsageRow {
  hour?: string | null;
  day?: string | null;
  model?: string | null;
  model_alias?: string | null;
  user_id?: string | null;
  requests: number;
  input_tokens: number;
  output_tokens: number;
  cost: number;
}

export interface Usages {
  data: UsageRow[];
  from: string;
  to: string;
}
