-- oldest writer: 2
ALTER TABLE users ADD COLUMN revoked_at BIGINT NOT NULL DEFAULT -62135596800000000; -- the zero time

CREATE TABLE applications (
    id                 TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id    TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    issuer             TEXT COLLATE "C" NOT NULL,
    external_id        TEXT COLLATE "C" NOT NULL,
    external_id_lower  TEXT COLLATE "C" NOT NULL,
    name               TEXT COLLATE "C" NOT NULL,
    name_key           TEXT COLLATE "C" NOT NULL,
    name_lower         TEXT COLLATE "C" NOT NULL,
    description        TEXT COLLATE "C" NOT NULL,
    description_lower  TEXT COLLATE "C" NOT NULL,
    public             SMALLINT         NOT NULL,
    dcr                SMALLINT         NOT NULL,
    post_login_success SMALLINT         NOT NULL,
    callbacks          TEXT COLLATE "C" NOT NULL,
    created_at         BIGINT           NOT NULL,
    updated_at         BIGINT           NOT NULL,
    CONSTRAINT applications_id UNIQUE (organization_id, id)
);

-- Live agents only: a deleted one leaves its application.
CREATE TABLE agents (
    id                           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id              TEXT COLLATE "C" NOT NULL,
    application_id               TEXT COLLATE "C" NOT NULL,
    issuer                       TEXT COLLATE "C" NOT NULL, -- issuer and external_id are the application's
    external_id                  TEXT COLLATE "C" NOT NULL,
    write_confirmations_required SMALLINT         NOT NULL,
    llm_gateway_enabled          SMALLINT         NOT NULL,
    approval_channel             TEXT COLLATE "C" NOT NULL,
    created_at                   BIGINT           NOT NULL,
    updated_at                   BIGINT           NOT NULL,
    CONSTRAINT agents_id UNIQUE (organization_id, id),
    CONSTRAINT agents_external_id UNIQUE (organization_id, external_id),
    FOREIGN KEY (organization_id, application_id) REFERENCES applications (organization_id, id)
);
CREATE INDEX agents_application ON agents (organization_id, application_id);

-- server_id and the agents' ids refer to what may have gone: archived policies outlive both.
CREATE TABLE policies (
    id                    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id       TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    name                  TEXT COLLATE "C" NOT NULL,
    name_lower            TEXT COLLATE "C" NOT NULL,
    description           TEXT COLLATE "C" NOT NULL,
    description_lower     TEXT COLLATE "C" NOT NULL,
    support_contact       TEXT COLLATE "C" NOT NULL,
    support_contact_lower TEXT COLLATE "C" NOT NULL,
    tags                  TEXT COLLATE "C" NOT NULL,
    status                TEXT COLLATE "C" NOT NULL,
    server_id             TEXT COLLATE "C" NOT NULL,
    application_ids       TEXT COLLATE "C" NOT NULL,
    rules                 TEXT COLLATE "C" NOT NULL,
    shadow                SMALLINT         NOT NULL,
    revision              BIGINT           NOT NULL,
    created_at            BIGINT           NOT NULL,
    updated_at            BIGINT           NOT NULL,
    created_by            TEXT COLLATE "C" NOT NULL,
    updated_by            TEXT COLLATE "C" NOT NULL,
    CONSTRAINT policies_id UNIQUE (organization_id, id)
);
CREATE UNIQUE INDEX policies_name ON policies (organization_id, name) WHERE status <> 'ARCHIVED';
CREATE INDEX policies_updated ON policies (organization_id, updated_at DESC, id);
CREATE INDEX policies_server ON policies (organization_id, server_id);

-- A policy's application_ids again, in their order, for joins.
CREATE TABLE policy_agents (
    organization_id TEXT COLLATE "C" NOT NULL,
    policy_id       TEXT COLLATE "C" NOT NULL,
    position        BIGINT           NOT NULL,
    agent_id        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (organization_id, policy_id, position),
    FOREIGN KEY (organization_id, policy_id) REFERENCES policies (organization_id, id)
);
CREATE INDEX policy_agents_agent ON policy_agents (organization_id, agent_id);

-- What each active policy governs. The primary key is what keeps two from governing the same.
CREATE TABLE active_policies (
    organization_id TEXT COLLATE "C" NOT NULL,
    server_id       TEXT COLLATE "C" NOT NULL,
    agent_id        TEXT COLLATE "C" NOT NULL, -- '': all agents
    policy_id       TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (organization_id, server_id, agent_id),
    FOREIGN KEY (organization_id, policy_id) REFERENCES policies (organization_id, id)
);
CREATE INDEX active_policies_policy ON active_policies (organization_id, policy_id);

CREATE TABLE policy_revisions (
    organization_id TEXT COLLATE "C" NOT NULL,
    policy_id       TEXT COLLATE "C" NOT NULL,
    number          BIGINT           NOT NULL,
    at              BIGINT           NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    changes         TEXT COLLATE "C" NOT NULL,
    policy          TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (organization_id, policy_id, number),
    FOREIGN KEY (organization_id, policy_id) REFERENCES policies (organization_id, id)
);

CREATE TABLE approvals (
    id               TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id  TEXT COLLATE "C" NOT NULL,
    user_id          TEXT COLLATE "C" NOT NULL,
    agent_id         TEXT COLLATE "C", -- null: the client is not registered
    client           TEXT COLLATE "C" NOT NULL,
    server_id        TEXT COLLATE "C" NOT NULL,
    tool             TEXT COLLATE "C" NOT NULL,
    binding          BYTEA            NOT NULL,
    arguments_digest TEXT COLLATE "C" NOT NULL,
    sealed_arguments BYTEA,
    policy_id        TEXT COLLATE "C" NOT NULL,
    policy_revision  BIGINT           NOT NULL,
    rule             TEXT COLLATE "C" NOT NULL,
    channel          TEXT COLLATE "C" NOT NULL,
    status           TEXT COLLATE "C" NOT NULL, -- pending, approved, denied or used: expired is derived
    expires_at       BIGINT           NOT NULL,
    created_at       BIGINT           NOT NULL,
    decided_at       BIGINT           NOT NULL,
    decided_via      TEXT COLLATE "C" NOT NULL,
    decided_by       TEXT COLLATE "C" NOT NULL,
    decided_client   TEXT COLLATE "C" NOT NULL,
    used_at          BIGINT           NOT NULL,
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX approvals_binding ON approvals (organization_id, user_id, binding);
CREATE INDEX approvals_user ON approvals (organization_id, user_id, created_at DESC, id DESC);
CREATE INDEX approvals_created ON approvals (organization_id, created_at DESC, id DESC);
CREATE INDEX approvals_server ON approvals (organization_id, server_id);
CREATE INDEX approvals_agent ON approvals (organization_id, agent_id);
CREATE INDEX approvals_expiry ON approvals (expires_at);

CREATE TABLE tool_pins (
    organization_id TEXT COLLATE "C" NOT NULL,
    server_id       TEXT COLLATE "C" NOT NULL,
    name            TEXT COLLATE "C" NOT NULL,
    hash            TEXT COLLATE "C" NOT NULL,
    definition      TEXT COLLATE "C" NOT NULL,
    seen_hash       TEXT COLLATE "C" NOT NULL,
    seen_definition TEXT COLLATE "C" NOT NULL,
    first_seen_at   BIGINT           NOT NULL,
    changed_at      BIGINT           NOT NULL,
    accepted_at     BIGINT           NOT NULL,
    accepted_by     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (organization_id, server_id, name),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
);

-- The audit log refers to nothing: it outlives what it tells of.
CREATE TABLE audit_heads (
    organization_id TEXT COLLATE "C" NOT NULL,
    node            TEXT COLLATE "C" NOT NULL,
    segment         TEXT COLLATE "C" NOT NULL,
    sequence        BIGINT           NOT NULL,
    hash            BYTEA            NOT NULL,
    PRIMARY KEY (organization_id, node, segment)
);

CREATE TABLE audit_records (
    organization_id TEXT COLLATE "C" NOT NULL,
    node            TEXT COLLATE "C" NOT NULL,
    segment         TEXT COLLATE "C" NOT NULL,
    sequence        BIGINT           NOT NULL,
    at              BIGINT           NOT NULL,
    text            BYTEA            NOT NULL,
    previous        BYTEA            NOT NULL,
    hash            BYTEA            NOT NULL,
    PRIMARY KEY (organization_id, node, segment, sequence)
);
CREATE INDEX audit_records_at ON audit_records (organization_id, at DESC);

CREATE TABLE audit_chunks (
    organization_id TEXT COLLATE "C" NOT NULL,
    node            TEXT COLLATE "C" NOT NULL,
    segment         TEXT COLLATE "C" NOT NULL,
    first           BIGINT           NOT NULL,
    last            BIGINT           NOT NULL,
    from_at         BIGINT           NOT NULL,
    to_at           BIGINT           NOT NULL,
    data            BYTEA            NOT NULL,
    PRIMARY KEY (organization_id, node, segment, first)
);
CREATE INDEX audit_chunks_to ON audit_chunks (organization_id, to_at DESC);

CREATE TABLE audit_checkpoints (
    node      TEXT COLLATE "C" NOT NULL,
    number    BIGINT           NOT NULL,
    segment   TEXT COLLATE "C" NOT NULL,
    at        BIGINT           NOT NULL,
    data      BYTEA            NOT NULL,
    signature BYTEA            NOT NULL,
    PRIMARY KEY (node, number)
);

-- The second wall, as in 0001.
DO $$
DECLARE t TEXT;
BEGIN
    FOREACH t IN ARRAY ARRAY['applications', 'agents', 'policies', 'policy_agents', 'active_policies', 'policy_revisions', 'approvals', 'tool_pins', 'audit_heads', 'audit_records', 'audit_chunks'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format($p$CREATE POLICY organization ON %I USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'))$p$, t);
    END LOOP;
END $$;
