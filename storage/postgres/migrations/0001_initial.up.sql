-- oldest writer: 1
-- Tables and columns are those of storage/sqlite. Times are microseconds since 1970 in UTC, booleans 0 or 1, lists and
-- objects JSON text. *_key and *_lower columns are made in Go, and text compares by its bytes, whatever the locale.
-- A constraint is named by its table and the field of a record that it is about.

CREATE TABLE epochs (
    organization_id TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- '' counts the changes that concern every organization
    epoch           BIGINT           NOT NULL
);

CREATE TABLE change_log (
    seq             BIGINT           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    epoch           BIGINT           NOT NULL,
    -- Numbers are given before transactions commit, so that a reader can see 7 before 6. A reader of the feed asks for
    -- all from the oldest transaction that was still open when it asked before.
    xact            XID8             NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX change_log_xact ON change_log (xact);

CREATE TABLE organizations (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    issuer     TEXT COLLATE "C" NOT NULL,
    slug       TEXT COLLATE "C" NOT NULL, -- '' until a token named one
    created_at BIGINT           NOT NULL
);
CREATE UNIQUE INDEX organizations_slug ON organizations (issuer, slug) WHERE slug <> '';

CREATE TABLE users (
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    id              TEXT COLLATE "C" NOT NULL,
    issuer          TEXT COLLATE "C" NOT NULL,
    subject         TEXT COLLATE "C" NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL,
    name            TEXT COLLATE "C" NOT NULL,
    email           TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT           NOT NULL,
    seen_at         BIGINT           NOT NULL,
    PRIMARY KEY (organization_id, id),
    CONSTRAINT users_subject UNIQUE (organization_id, issuer, subject)
);
CREATE INDEX users_id ON users (id);

CREATE TABLE directory_entries (
    id                TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id   TEXT COLLATE "C" REFERENCES organizations (id), -- null: every organization sees it
    name              TEXT COLLATE "C" NOT NULL,
    name_key          TEXT COLLATE "C" NOT NULL,
    name_lower        TEXT COLLATE "C" NOT NULL,
    description       TEXT COLLATE "C" NOT NULL,
    description_lower TEXT COLLATE "C" NOT NULL,
    icon              TEXT COLLATE "C" NOT NULL,
    slug              TEXT COLLATE "C" NOT NULL,
    slug_lower        TEXT COLLATE "C" NOT NULL,
    url               TEXT COLLATE "C" NOT NULL,
    protocol          TEXT COLLATE "C" NOT NULL,
    source            TEXT COLLATE "C" NOT NULL,
    provider          TEXT COLLATE "C" NOT NULL,
    auth_params       TEXT COLLATE "C" NOT NULL,
    scopes            TEXT COLLATE "C" NOT NULL,
    oauth             TEXT COLLATE "C" NOT NULL,
    public            SMALLINT         NOT NULL,
    requires_auth     SMALLINT         NOT NULL,
    categories        TEXT COLLATE "C" NOT NULL,
    events_url        TEXT COLLATE "C" NOT NULL,
    meta              TEXT COLLATE "C" NOT NULL,
    created_at        BIGINT           NOT NULL,
    updated_at        BIGINT           NOT NULL
);
CREATE UNIQUE INDEX directory_entries_slug ON directory_entries (organization_id, slug) WHERE organization_id IS NOT NULL;
CREATE INDEX directory_entries_name ON directory_entries (organization_id, name_key, id);

CREATE TABLE servers (
    id                   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id      TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    name                 TEXT COLLATE "C" NOT NULL,
    name_key             TEXT COLLATE "C" NOT NULL,
    name_lower           TEXT COLLATE "C" NOT NULL,
    slug                 TEXT COLLATE "C" NOT NULL,
    slug_lower           TEXT COLLATE "C" NOT NULL,
    directory_id         TEXT COLLATE "C" NOT NULL REFERENCES directory_entries (id),
    status               TEXT COLLATE "C" NOT NULL,
    client_id            TEXT COLLATE "C" NOT NULL,
    sealed_client_secret BYTEA,
    meta                 TEXT COLLATE "C" NOT NULL,
    created_by           TEXT COLLATE "C" NOT NULL,
    created_at           BIGINT           NOT NULL,
    updated_at           BIGINT           NOT NULL,
    CONSTRAINT servers_id UNIQUE (organization_id, id),
    CONSTRAINT servers_name UNIQUE (organization_id, name_key),
    CONSTRAINT servers_slug UNIQUE (organization_id, slug)
);
CREATE INDEX servers_directory ON servers (directory_id);

CREATE TABLE oauth_clients (
    organization_id    TEXT COLLATE "C" NOT NULL,
    server_id          TEXT COLLATE "C" NOT NULL,
    issuer             TEXT COLLATE "C" NOT NULL,
    client_id          TEXT COLLATE "C" NOT NULL,
    sealed_secret      BYTEA,
    auth_method        TEXT COLLATE "C" NOT NULL,
    kind               TEXT COLLATE "C" NOT NULL,
    redirect_uri       TEXT COLLATE "C" NOT NULL,
    endpoints          TEXT COLLATE "C" NOT NULL,
    scopes             TEXT COLLATE "C" NOT NULL,
    issuer_in_response SMALLINT         NOT NULL,
    created_at         BIGINT           NOT NULL,
    PRIMARY KEY (organization_id, server_id),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
);

CREATE TABLE connections (
    organization_id   TEXT COLLATE "C" NOT NULL,
    user_id           TEXT COLLATE "C" NOT NULL,
    server_id         TEXT COLLATE "C" NOT NULL,
    id                TEXT COLLATE "C" NOT NULL CONSTRAINT connections_id UNIQUE,
    status            TEXT COLLATE "C" NOT NULL,
    kind              TEXT COLLATE "C" NOT NULL,
    sealed_credential BYTEA,
    client_id         TEXT COLLATE "C" NOT NULL,
    scope             TEXT COLLATE "C" NOT NULL,
    origin            TEXT COLLATE "C" NOT NULL,
    resource          TEXT COLLATE "C" NOT NULL,
    issuer            TEXT COLLATE "C" NOT NULL,
    expires_at        BIGINT           NOT NULL,
    reason            TEXT COLLATE "C" NOT NULL,
    version           BIGINT           NOT NULL,
    created_at        BIGINT           NOT NULL,
    updated_at        BIGINT           NOT NULL,
    PRIMARY KEY (organization_id, user_id, server_id),
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX connections_server ON connections (organization_id, server_id);

CREATE TABLE attempts (
    state_hash      BYTEA            NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    server_id       TEXT COLLATE "C" NOT NULL,
    connection_id   TEXT COLLATE "C" NOT NULL,
    issuer          TEXT COLLATE "C" NOT NULL,
    sealed          BYTEA,
    created_at      BIGINT           NOT NULL,
    expires_at      BIGINT           NOT NULL,
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX attempts_connection ON attempts (organization_id, user_id, server_id, expires_at);
CREATE INDEX attempts_expiry ON attempts (expires_at);
CREATE INDEX attempts_server ON attempts (organization_id, server_id);

CREATE TABLE data_keys (
    version       BIGINT           NOT NULL PRIMARY KEY,
    master_key_id TEXT COLLATE "C" NOT NULL,
    wrapped       BYTEA            NOT NULL,
    created_at    BIGINT           NOT NULL
);

-- The second wall: rows are those of the organization that the transaction has named ('=' and its id), or all for the
-- few statements that look across ('*'). FORCE binds the owner of the tables too; superusers and roles with BYPASSRLS
-- are not bound.
DO $$
DECLARE t TEXT;
BEGIN
    FOREACH t IN ARRAY ARRAY['epochs', 'change_log', 'users', 'servers', 'oauth_clients', 'connections', 'attempts'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format($p$CREATE POLICY organization ON %I USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'))$p$, t);
    END LOOP;
END $$;

ALTER TABLE organizations ENABLE ROW LEVEL SECURITY;
ALTER TABLE organizations FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON organizations USING (current_setting('durward.organization', true) IN ('=' || id, '*'));

-- Every organization sees the entries that belong to none.
ALTER TABLE directory_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE directory_entries FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON directory_entries USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
CREATE POLICY shared ON directory_entries FOR SELECT USING (organization_id IS NULL AND current_setting('durward.organization', true) <> '');
