-- oldest writer: 3
-- Of an id that a server gave twice, the newest creation stays: the task is one owner's alone.
DELETE FROM tasks WHERE EXISTS (SELECT 1 FROM tasks AS newer
    WHERE newer.organization_id = tasks.organization_id AND newer.server_id = tasks.server_id AND newer.digest = tasks.digest
        AND (newer.created_at, newer.user_id, newer.agent) > (tasks.created_at, tasks.user_id, tasks.agent));
CREATE UNIQUE INDEX tasks_id ON tasks (organization_id, server_id, digest);
-- A held call that its client waits for. One that is taken back has no row any more.
CREATE TABLE holds (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    server_id       TEXT COLLATE "C" NOT NULL,
    call            TEXT COLLATE "C" NOT NULL, -- digest of whose it is, session and request
    expires_at      BIGINT           NOT NULL,
    FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX holds_call ON holds (organization_id, user_id, call);
CREATE INDEX holds_server ON holds (organization_id, server_id);
CREATE INDEX holds_expiry ON holds (expires_at);
ALTER TABLE holds ENABLE ROW LEVEL SECURITY;
ALTER TABLE holds FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON holds USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
