CREATE TABLE tasks (
    organization_id TEXT    NOT NULL,
    server_id       TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    agent           TEXT    NOT NULL,
    digest          TEXT    NOT NULL, -- of the id
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, server_id, user_id, agent, digest),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_expiry ON tasks (expires_at);
