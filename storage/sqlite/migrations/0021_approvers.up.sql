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
-- An announcement of a held call, and the log of its delivery.
CREATE TABLE announcements (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL, -- which may be gone by now, as may be the call
    approval_id     TEXT    NOT NULL,
    event           TEXT    NOT NULL,
    receiver        TEXT    NOT NULL, -- its name in the configuration
    recipient       TEXT    NOT NULL, -- of a mail
    number          INTEGER NOT NULL, -- place among those of the call to the receiver
    text            TEXT    NOT NULL, -- JSON
    state           TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    next_at         INTEGER NOT NULL,
    ended_at        INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    last_error      TEXT    NOT NULL
) STRICT;
CREATE INDEX announcements_due ON announcements (receiver, next_at) WHERE state = 'waiting';
CREATE INDEX announcements_waiting ON announcements (organization_id, receiver) WHERE state = 'waiting';
CREATE INDEX announcements_call ON announcements (organization_id, approval_id, number);
CREATE INDEX announcements_log ON announcements (organization_id, id);
CREATE INDEX announcements_age ON announcements (created_at);
