-- oldest writer: 3
CREATE TABLE tasks (
    organization_id TEXT COLLATE "C" NOT NULL,
    server_id       TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    agent           TEXT COLLATE "C" NOT NULL,
    digest          TEXT COLLATE "C" NOT NULL, -- of the id
    created_at      BIGINT           NOT NULL,
    expires_at      BIGINT           NOT NULL,
    PRIMARY KEY (organization_id, server_id, user_id, agent, digest),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX tasks_expiry ON tasks (expires_at);
ALTER TABLE tasks ENABLE ROW LEVEL SECURITY;
ALTER TABLE tasks FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON tasks USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
