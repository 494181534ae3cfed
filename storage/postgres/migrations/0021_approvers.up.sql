-- oldest writer: 3
-- Other people than the caller decide on a call.
ALTER TABLE approvals ADD COLUMN approvers TEXT COLLATE "C" NOT NULL DEFAULT ''; -- JSON; empty: the caller decides
CREATE INDEX approvals_foreign ON approvals (organization_id, expires_at) WHERE approvers <> '' AND status = 'pending';
-- The facts of a user's last login with a browser: sessions are cookies, which are too small for them.
CREATE TABLE session_facts (
    organization_id TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    facts           TEXT COLLATE "C" NOT NULL, -- JSON
    facts_at        BIGINT           NOT NULL,
    PRIMARY KEY (organization_id, user_id),
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id) ON DELETE CASCADE
);
ALTER TABLE session_facts ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_facts FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON session_facts USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
