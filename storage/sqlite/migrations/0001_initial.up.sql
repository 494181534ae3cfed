-- Times are microseconds since 1970 in UTC, booleans 0 or 1, lists and objects JSON text.
-- *_key and *_lower columns are made in Go: SQLite folds ASCII only.

CREATE TABLE epochs (
    organization_id TEXT    NOT NULL PRIMARY KEY, -- '' counts the changes that concern every organization
    epoch           INTEGER NOT NULL
) STRICT;

CREATE TABLE change_log (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id TEXT    NOT NULL,
    epoch           INTEGER NOT NULL
) STRICT;

CREATE TABLE organizations (
    id         TEXT    NOT NULL PRIMARY KEY,
    issuer     TEXT    NOT NULL,
    slug       TEXT    NOT NULL, -- '' until a token named one
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX organizations_slug ON organizations (issuer, slug) WHERE slug <> '';

CREATE TABLE users (
    organization_id TEXT    NOT NULL REFERENCES organizations (id),
    id              TEXT    NOT NULL,
    issuer          TEXT    NOT NULL,
    subject         TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    email           TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    seen_at         INTEGER NOT NULL,
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, issuer, subject)
) STRICT;
CREATE INDEX users_id ON users (id);

CREATE TABLE directory_entries (
    id                TEXT    NOT NULL PRIMARY KEY,
    organization_id   TEXT    REFERENCES organizations (id), -- null: every organization sees it
    name              TEXT    NOT NULL,
    name_key          TEXT    NOT NULL,
    name_lower        TEXT    NOT NULL,
    description       TEXT    NOT NULL,
    description_lower TEXT    NOT NULL,
    icon              TEXT    NOT NULL,
    slug              TEXT    NOT NULL,
    slug_lower        TEXT    NOT NULL,
    url               TEXT    NOT NULL,
    protocol          TEXT    NOT NULL,
    source            TEXT    NOT NULL,
    provider          TEXT    NOT NULL,
    auth_params       TEXT    NOT NULL,
    scopes            TEXT    NOT NULL,
    oauth             TEXT    NOT NULL,
    public            INTEGER NOT NULL,
    requires_auth     INTEGER NOT NULL,
    categories        TEXT    NOT NULL,
    events_url        TEXT    NOT NULL,
    meta              TEXT    NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX directory_entries_slug ON directory_entries (organization_id, slug) WHERE organization_id IS NOT NULL;
CREATE INDEX directory_entries_name ON directory_entries (organization_id, name_key, id);

CREATE TABLE servers (
    id                   TEXT    NOT NULL PRIMARY KEY,
    organization_id      TEXT    NOT NULL REFERENCES organizations (id),
    name                 TEXT    NOT NULL,
    name_key             TEXT    NOT NULL,
    name_lower           TEXT    NOT NULL,
    slug                 TEXT    NOT NULL,
    slug_lower           TEXT    NOT NULL,
    directory_id         TEXT    NOT NULL REFERENCES directory_entries (id),
    status               TEXT    NOT NULL,
    client_id            TEXT    NOT NULL,
    sealed_client_secret BLOB,
    meta                 TEXT    NOT NULL,
    created_by           TEXT    NOT NULL,
    created_at           INTEGER NOT NULL,
    updated_at           INTEGER NOT NULL,
    UNIQUE (organization_id, id),
    UNIQUE (organization_id, name_key),
    UNIQUE (organization_id, slug)
) STRICT;
CREATE INDEX servers_directory ON servers (directory_id);

CREATE TABLE oauth_clients (
    organization_id    TEXT    NOT NULL,
    server_id          TEXT    NOT NULL,
    issuer             TEXT    NOT NULL,
    client_id          TEXT    NOT NULL,
    sealed_secret      BLOB,
    auth_method        TEXT    NOT NULL,
    kind               TEXT    NOT NULL,
    redirect_uri       TEXT    NOT NULL,
    endpoints          TEXT    NOT NULL,
    scopes             TEXT    NOT NULL,
    issuer_in_response INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    PRIMARY KEY (organization_id, server_id),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
) STRICT;

CREATE TABLE connections (
    organization_id   TEXT    NOT NULL,
    user_id           TEXT    NOT NULL,
    server_id         TEXT    NOT NULL,
    id                TEXT    NOT NULL UNIQUE,
    status            TEXT    NOT NULL,
    kind              TEXT    NOT NULL,
    sealed_credential BLOB,
    client_id         TEXT    NOT NULL,
    scope             TEXT    NOT NULL,
    origin            TEXT    NOT NULL,
    resource          TEXT    NOT NULL,
    issuer            TEXT    NOT NULL,
    expires_at        INTEGER NOT NULL,
    reason            TEXT    NOT NULL,
    version           INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    PRIMARY KEY (organization_id, user_id, server_id),
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX connections_server ON connections (organization_id, server_id);

CREATE TABLE attempts (
    state_hash      BLOB    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    server_id       TEXT    NOT NULL,
    connection_id   TEXT    NOT NULL,
    issuer          TEXT    NOT NULL,
    sealed          BLOB,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX attempts_connection ON attempts (organization_id, user_id, server_id, expires_at);
CREATE INDEX attempts_expiry ON attempts (expires_at);
CREATE INDEX attempts_server ON attempts (organization_id, server_id);

CREATE TABLE data_keys (
    version       INTEGER NOT NULL PRIMARY KEY,
    master_key_id TEXT    NOT NULL,
    wrapped       BLOB    NOT NULL,
    created_at    INTEGER NOT NULL
) STRICT;
