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
