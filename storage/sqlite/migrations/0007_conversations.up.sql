CREATE TABLE conversations (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    server_id       TEXT    NOT NULL,
    declared        TEXT    NOT NULL,
    upstream        TEXT    NOT NULL, -- '': not open yet
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX conversations_user ON conversations (organization_id, user_id, server_id, created_at DESC, id DESC);
CREATE INDEX conversations_server ON conversations (organization_id, server_id);
CREATE INDEX conversations_expiry ON conversations (expires_at);
