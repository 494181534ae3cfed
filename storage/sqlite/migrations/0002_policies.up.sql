ALTER TABLE users ADD COLUMN revoked_at INTEGER NOT NULL DEFAULT -62135596800000000; -- the zero time

CREATE TABLE applications (
    id                 TEXT    NOT NULL PRIMARY KEY,
    organization_id    TEXT    NOT NULL REFERENCES organizations (id),
    issuer             TEXT    NOT NULL,
    external_id        TEXT    NOT NULL,
    external_id_lower  TEXT    NOT NULL,
    name               TEXT    NOT NULL,
    name_key           TEXT    NOT NULL,
    name_lower         TEXT    NOT NULL,
    description        TEXT    NOT NULL,
    description_lower  TEXT    NOT NULL,
    public             INTEGER NOT NULL,
    dcr                INTEGER NOT NULL,
    post_login_success INTEGER NOT NULL,
    callbacks          TEXT    NOT NULL,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    UNIQUE (organization_id, id)
) STRICT;

-- Live agents only: a deleted one leaves its application.
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
CREATE INDEX agents_application ON agents (organization_id, application_id);

-- server_id and the agents' ids refer to what may have gone: archived policies outlive both.
CREATE TABLE policies (
    id                    TEXT    NOT NULL PRIMARY KEY,
    organization_id       TEXT    NOT NULL REFERENCES organizations (id),
    name                  TEXT    NOT NULL,
    name_lower            TEXT    NOT NULL,
    description           TEXT    NOT NULL,
    description_lower     TEXT    NOT NULL,
    support_contact       TEXT    NOT NULL,
    support_contact_lower TEXT    NOT NULL,
    tags                  TEXT    NOT NULL,
    status                TEXT    NOT NULL,
    server_id             TEXT    NOT NULL,
    application_ids       TEXT    NOT NULL,
    rules                 TEXT    NOT NULL,
    shadow                INTEGER NOT NULL,
    revision              INTEGER NOT NULL,
    created_at            INTEGER NOT NULL,
    updated_at            INTEGER NOT NULL,
    created_by            TEXT    NOT NULL,
    updated_by            TEXT    NOT NULL,
    UNIQUE (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX policies_name ON policies (organization_id, name) WHERE status <> 'ARCHIVED';
CREATE INDEX policies_updated ON policies (organization_id, updated_at DESC, id);
CREATE INDEX policies_server ON policies (organization_id, server_id);

-- A policy's application_ids again, in their order, for joins.
CREATE TABLE policy_agents (
    organization_id TEXT    NOT NULL,
    policy_id       TEXT    NOT NULL,
    position        INTEGER NOT NULL,
    agent_id        TEXT    NOT NULL,
    PRIMARY KEY (organization_id, policy_id, position),
    FOREIGN KEY (organization_id, policy_id) REFERENCES policies (organization_id, id)
) STRICT;
CREATE INDEX policy_agents_agent ON policy_agents (organization_id, agent_id);

-- What each active policy governs. The primary key is what keeps two from governing the same.
CREATE TABLE active_policies (
    organization_id TEXT NOT NULL,
    server_id       TEXT NOT NULL,
    agent_id        TEXT NOT NULL, -- '': all agents
    policy_id       TEXT NOT NULL,
    PRIMARY KEY (organization_id, server_id, agent_id),
    FOREIGN KEY (organization_id, policy_id) REFERENCES policies (organization_id, id)
) STRICT;
CREATE INDEX active_policies_policy ON active_policies (organization_id, policy_id);

CREATE TABLE policy_revisions (
    organization_id TEXT    NOT NULL,
    policy_id       TEXT    NOT NULL,
    number          INTEGER NOT NULL,
    at              INTEGER NOT NULL,
    user_id         TEXT    NOT NULL,
    changes         TEXT    NOT NULL,
    policy          TEXT    NOT NULL,
    PRIMARY KEY (organization_id, policy_id, number),
    FOREIGN KEY (organization_id, policy_id) REFERENCES policies (organization_id, id)
) STRICT;

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
CREATE INDEX approvals_binding ON approvals (organization_id, user_id, binding);
CREATE INDEX approvals_user ON approvals (organization_id, user_id, created_at DESC, id DESC);
CREATE INDEX approvals_created ON approvals (organization_id, created_at DESC, id DESC);
CREATE INDEX approvals_server ON approvals (organization_id, server_id);
CREATE INDEX approvals_agent ON approvals (organization_id, agent_id);
CREATE INDEX approvals_expiry ON approvals (expires_at);

CREATE TABLE tool_pins (
    organization_id TEXT    NOT NULL,
    server_id       TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    hash            TEXT    NOT NULL,
    definition      TEXT    NOT NULL,
    seen_hash       TEXT    NOT NULL,
    seen_definition TEXT    NOT NULL,
    first_seen_at   INTEGER NOT NULL,
    changed_at      INTEGER NOT NULL,
    accepted_at     INTEGER NOT NULL,
    accepted_by     TEXT    NOT NULL,
    PRIMARY KEY (organization_id, server_id, name),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
) STRICT;

-- The audit log refers to nothing: it outlives what it tells of.
CREATE TABLE audit_heads (
    organization_id TEXT    NOT NULL,
    node            TEXT    NOT NULL,
    segment         TEXT    NOT NULL,
    sequence        INTEGER NOT NULL,
    hash            BLOB    NOT NULL,
    PRIMARY KEY (organization_id, node, segment)
) STRICT;

CREATE TABLE audit_records (
    organization_id TEXT    NOT NULL,
    node            TEXT    NOT NULL,
    segment         TEXT    NOT NULL,
    sequence        INTEGER NOT NULL,
    at              INTEGER NOT NULL,
    text            BLOB    NOT NULL,
    previous        BLOB    NOT NULL,
    hash            BLOB    NOT NULL,
    PRIMARY KEY (organization_id, node, segment, sequence)
) STRICT;
CREATE INDEX audit_records_at ON audit_records (organization_id, at DESC);

CREATE TABLE audit_chunks (
    organization_id TEXT    NOT NULL,
    node            TEXT    NOT NULL,
    segment         TEXT    NOT NULL,
    first           INTEGER NOT NULL,
    last            INTEGER NOT NULL,
    from_at         INTEGER NOT NULL,
    to_at           INTEGER NOT NULL,
    data            BLOB    NOT NULL,
    PRIMARY KEY (organization_id, node, segment, first)
) STRICT;
CREATE INDEX audit_chunks_to ON audit_chunks (organization_id, to_at DESC);

CREATE TABLE audit_checkpoints (
    node      TEXT    NOT NULL,
    number    INTEGER NOT NULL,
    segment   TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    data      BLOB    NOT NULL,
    signature BLOB    NOT NULL,
    PRIMARY KEY (node, number)
) STRICT;
