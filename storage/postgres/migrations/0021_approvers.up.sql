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
-- An announcement of a held call, and the log of its delivery.
CREATE TABLE announcements (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL, -- which may be gone by now, as may be the call
    approval_id     TEXT COLLATE "C" NOT NULL,
    event           TEXT COLLATE "C" NOT NULL,
    receiver        TEXT COLLATE "C" NOT NULL, -- its name in the configuration
    recipient       TEXT COLLATE "C" NOT NULL, -- of a mail
    number          BIGINT           NOT NULL, -- place among those of the call to the receiver
    text            TEXT COLLATE "C" NOT NULL, -- JSON
    state           TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT           NOT NULL,
    next_at         BIGINT           NOT NULL,
    ended_at        BIGINT           NOT NULL,
    attempts        BIGINT           NOT NULL,
    last_error      TEXT COLLATE "C" NOT NULL
);
CREATE INDEX announcements_due ON announcements (receiver, next_at) WHERE state = 'waiting';
CREATE INDEX announcements_waiting ON announcements (organization_id, receiver) WHERE state = 'waiting';
CREATE INDEX announcements_call ON announcements (organization_id, approval_id, number);
CREATE INDEX announcements_log ON announcements (organization_id, id);
CREATE INDEX announcements_age ON announcements (created_at);
ALTER TABLE announcements ENABLE ROW LEVEL SECURITY;
ALTER TABLE announcements FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON announcements USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
