DROP TABLE used_assertions;
DROP TABLE signing_keys;
DROP TABLE registered_clients;
DROP TABLE agent_credentials;
DROP TABLE consents;
DROP TABLE logins;
ALTER TABLE agents RENAME TO former_agents;
DROP INDEX agents_application;
CREATE TABLE agents (
    id                           TEXT    NOT NULL PRIMARY KEY,
    organization_id              TEXT    NOT NULL,
    application_id               TEXT    NOT NULL,
    issuer                       TEXT    NOT NULL, -- issuer and external_id are the application's
    external_id                  TEXT    NOT NULL,
    write_confirmations_required INTEGER NOT NULL,
    llm_gateway_enabled          INTEGER NOT NULL,
    approval_channel             TEXT    NOT NULL,
    created_at                   INTEGER NOT NULL,
    updated_at                   INTEGER NOT NULL,
    UNIQUE (organization_id, id),
    UNIQUE (organization_id, external_id),
    FOREIGN KEY (organization_id, application_id) REFERENCES applications (organization_id, id)
) STRICT;
INSERT INTO agents (id, organization_id, application_id, issuer, external_id, write_confirmations_required, llm_gateway_enabled,
        approval_channel, created_at, updated_at)
    SELECT id, organization_id, application_id, issuer, external_id, write_confirmations_required, llm_gateway_enabled,
        approval_channel, created_at, updated_at FROM former_agents;
CREATE INDEX agents_application ON agents (organization_id, application_id);
ALTER TABLE approvals RENAME TO former_approvals;
CREATE TABLE approvals (
    id               TEXT    NOT NULL PRIMARY KEY,
    organization_id  TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    agent_id         TEXT, -- null: the client is not registered
    client           TEXT    NOT NULL,
    server_id        TEXT    NOT NULL,
    tool             TEXT    NOT NULL,
    binding          BLOB    NOT NULL,
    arguments_digest TEXT    NOT NULL,
    sealed_arguments BLOB,
    policy_id        TEXT    NOT NULL,
    policy_revision  INTEGER NOT NULL,
    rule             TEXT    NOT NULL,
    channel          TEXT    NOT NULL,
    status           TEXT    NOT NULL, -- pending, approved, denied or used: expired is derived
    expires_at       INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    decided_at       INTEGER NOT NULL,
    decided_via      TEXT    NOT NULL,
    decided_by       TEXT    NOT NULL,
    decided_client   TEXT    NOT NULL,
    used_at          INTEGER NOT NULL,
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id) ON DELETE CASCADE
) STRICT;
INSERT INTO approvals (id, organization_id, user_id, agent_id, client, server_id, tool, binding, arguments_digest, sealed_arguments, policy_id, policy_revision,
        rule, channel, status, expires_at, created_at, decided_at, decided_via, decided_by, decided_client, used_at)
    SELECT id, organization_id, user_id, agent_id, client, server_id, tool, binding, arguments_digest, sealed_arguments, policy_id, policy_revision,
        rule, channel, status, expires_at, created_at, decided_at, decided_via, decided_by, decided_client, used_at FROM former_approvals;
DROP TABLE former_approvals;
CREATE INDEX approvals_binding ON approvals (organization_id, user_id, binding);
CREATE INDEX approvals_user ON approvals (organization_id, user_id, created_at DESC, id DESC);
CREATE INDEX approvals_created ON approvals (organization_id, created_at DESC, id DESC);
CREATE INDEX approvals_server ON approvals (organization_id, server_id);
CREATE INDEX approvals_agent ON approvals (organization_id, agent_id);
CREATE INDEX approvals_expiry ON approvals (expires_at);
DROP TABLE former_agents;
