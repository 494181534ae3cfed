-- oldest writer: 3
-- Issuers give their clients the same ids: each client is an agent of its own.
ALTER TABLE agents DROP CONSTRAINT agents_external_id;
ALTER TABLE agents ADD CONSTRAINT agents_external_id UNIQUE (organization_id, issuer, external_id);
-- A user's login with an OAuth client of the gateway, from the consent until it ends.
CREATE TABLE logins (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    client_id       TEXT COLLATE "C" NOT NULL,
    client_name     TEXT COLLATE "C" NOT NULL,
    resource        TEXT COLLATE "C" NOT NULL,
    issuer          TEXT COLLATE "C" NOT NULL,
    audience        TEXT COLLATE "C" NOT NULL,
    subject         TEXT COLLATE "C" NOT NULL, -- at the issuer
    created_at      BIGINT           NOT NULL,
    used_at         BIGINT           NOT NULL,
    expires_at      BIGINT           NOT NULL, -- the login's, and the code's before it is redeemed
    ends_at         BIGINT           NOT NULL, -- at the latest
    redirect_uri    TEXT COLLATE "C" NOT NULL,
    challenge       TEXT COLLATE "C" NOT NULL,
    redeemed_at     BIGINT           NOT NULL,
    generation      BIGINT           NOT NULL, -- of refresh tokens
    rotated_at      BIGINT           NOT NULL,
    facts           TEXT COLLATE "C" NOT NULL, -- JSON
    facts_at        BIGINT           NOT NULL,
    sealed_refresh  BYTEA, -- null: the identity provider gave none
    sealed_id_token BYTEA, -- null: the identity provider gave none
    id_token_until  BIGINT           NOT NULL,
    renewing_at     BIGINT           NOT NULL, -- since when somebody asks the identity provider
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX logins_user ON logins (organization_id, user_id, created_at);
CREATE INDEX logins_expiry ON logins (expires_at);
ALTER TABLE logins ENABLE ROW LEVEL SECURITY;
ALTER TABLE logins FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON logins USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
-- A user lets a client act for them at a resource.
CREATE TABLE consents (
    organization_id TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    client_id       TEXT COLLATE "C" NOT NULL,
    resource        TEXT COLLATE "C" NOT NULL,
    redirect_origin TEXT COLLATE "C" NOT NULL,
    client_name     TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT           NOT NULL,
    PRIMARY KEY (organization_id, user_id, client_id, resource, redirect_origin),
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id) ON DELETE CASCADE
);
ALTER TABLE consents ENABLE ROW LEVEL SECURITY;
ALTER TABLE consents FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON consents USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
-- A credential with which an agent logs in at the gateway without a person.
CREATE TABLE agent_credentials (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    agent_id        TEXT COLLATE "C" NOT NULL,
    name            TEXT COLLATE "C" NOT NULL,
    secret_hash     BYTEA, -- null: there are keys
    jwks            TEXT COLLATE "C" NOT NULL, -- JSON, public keys alone
    created_at      BIGINT           NOT NULL,
    FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX agent_credentials_agent ON agent_credentials (agent_id, organization_id);
ALTER TABLE agent_credentials ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent_credentials FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON agent_credentials USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
-- An OAuth client that registered itself, before anybody has logged in with it: of no organization.
CREATE TABLE registered_clients (
    id            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name          TEXT COLLATE "C" NOT NULL,
    auth_method   TEXT COLLATE "C" NOT NULL,
    secret_hash   BYTEA, -- null: a public client
    redirect_uris TEXT COLLATE "C" NOT NULL, -- JSON
    grant_types   TEXT COLLATE "C" NOT NULL, -- JSON
    created_at    BIGINT           NOT NULL,
    logged_in_at  BIGINT           NOT NULL
);
CREATE INDEX registered_clients_unused ON registered_clients (logged_in_at, created_at);
-- A key that signs access tokens, of all organizations.
CREATE TABLE signing_keys (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    sealed     BYTEA            NOT NULL,
    created_at BIGINT           NOT NULL,
    expires_at BIGINT           NOT NULL
);
-- An assertion that was presented (RFC 7523): each counts once.
CREATE TABLE used_assertions (
    issuer     TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL, -- the claim jti
    expires_at BIGINT           NOT NULL,
    PRIMARY KEY (issuer, id)
);
CREATE INDEX used_assertions_expiry ON used_assertions (expires_at);
