-- Issuers give their clients the same ids: each client is an agent of its own. SQLite changes no constraint of a table, so
-- the table is made anew, and with it the one that refers to it, whose rows would go with the former table.
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
    UNIQUE (organization_id, issuer, external_id),
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
-- A user's login with an OAuth client of the gateway, from the consent until it ends.
CREATE TABLE logins (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    client_id       TEXT    NOT NULL,
    client_name     TEXT    NOT NULL,
    resource        TEXT    NOT NULL,
    issuer          TEXT    NOT NULL,
    audience        TEXT    NOT NULL,
    subject         TEXT    NOT NULL, -- at the issuer
    created_at      INTEGER NOT NULL,
    used_at         INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL, -- the login's, and the code's before it is redeemed
    ends_at         INTEGER NOT NULL, -- at the latest
    redirect_uri    TEXT    NOT NULL,
    challenge       TEXT    NOT NULL,
    redeemed_at     INTEGER NOT NULL,
    generation      INTEGER NOT NULL, -- of refresh tokens
    rotated_at      INTEGER NOT NULL,
    facts           TEXT    NOT NULL, -- JSON
    facts_at        INTEGER NOT NULL,
    sealed_refresh  BLOB, -- null: the identity provider gave none
    sealed_id_token BLOB, -- null: the identity provider gave none
    id_token_until  INTEGER NOT NULL,
    renewing_at     INTEGER NOT NULL, -- since when somebody asks the identity provider
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX logins_user ON logins (organization_id, user_id, created_at);
CREATE INDEX logins_expiry ON logins (expires_at);
-- A user lets a client act for them at a resource.
CREATE TABLE consents (
    organization_id TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    client_id       TEXT    NOT NULL,
    resource        TEXT    NOT NULL,
    redirect_origin TEXT    NOT NULL,
    client_name     TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, user_id, client_id, resource, redirect_origin),
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
-- A credential with which an agent logs in at the gateway without a person.
CREATE TABLE agent_credentials (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    agent_id        TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    secret_hash     BLOB, -- null: there are keys
    jwks            TEXT    NOT NULL, -- JSON, public keys alone
    created_at      INTEGER NOT NULL,
    FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX agent_credentials_agent ON agent_credentials (agent_id, organization_id);
-- An OAuth client that registered itself, before anybody has logged in with it: of no organization.
CREATE TABLE registered_clients (
    id            TEXT    NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    auth_method   TEXT    NOT NULL,
    secret_hash   BLOB, -- null: a public client
    redirect_uris TEXT    NOT NULL, -- JSON
    grant_types   TEXT    NOT NULL, -- JSON
    created_at    INTEGER NOT NULL,
    logged_in_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX registered_clients_unused ON registered_clients (logged_in_at, created_at);
-- A key that signs access tokens, of all organizations.
CREATE TABLE signing_keys (
    id         TEXT    NOT NULL PRIMARY KEY,
    sealed     BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
-- An assertion that was presented (RFC 7523): each counts once.
CREATE TABLE used_assertions (
    issuer     TEXT    NOT NULL,
    id         TEXT    NOT NULL, -- the claim jti
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX used_assertions_expiry ON used_assertions (expires_at);
