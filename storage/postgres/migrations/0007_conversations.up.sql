-- oldest writer: 3
CREATE TABLE conversations (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    server_id       TEXT COLLATE "C" NOT NULL,
    declared        TEXT COLLATE "C" NOT NULL,
    upstream        TEXT COLLATE "C" NOT NULL, -- '': not open yet
    created_at      BIGINT           NOT NULL,
    expires_at      BIGINT           NOT NULL,
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id),
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX conversations_user ON conversations (organization_id, user_id, server_id, created_at DESC, id DESC);
CREATE INDEX conversations_server ON conversations (organization_id, server_id);
CREATE INDEX conversations_expiry ON conversations (expires_at);
ALTER TABLE conversations ENABLE ROW LEVEL SECURITY;
ALTER TABLE conversations FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON conversations USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
