-- Other people than the caller decide on a call.
ALTER TABLE approvals ADD COLUMN approvers TEXT NOT NULL DEFAULT ''; -- JSON; empty: the caller decides
CREATE INDEX approvals_foreign ON approvals (organization_id, expires_at) WHERE approvers <> '' AND status = 'pending';
-- The facts of a user's last login with a browser: sessions are cookies, which are too small for them.
CREATE TABLE session_facts (
    organization_id TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    facts           TEXT    NOT NULL, -- JSON
    facts_at        INTEGER NOT NULL,
    PRIMARY KEY (organization_id, user_id),
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
