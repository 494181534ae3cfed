-- Agents had this by default, and it had no effect. It has one now, for those of whom it is said from here on.
UPDATE agents SET write_confirmations_required = 0 WHERE write_confirmations_required <> 0;
-- A piece of work that takes longer than a request.
CREATE TABLE jobs (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    user_id         TEXT    NOT NULL, -- of whoever asked
    kind            TEXT    NOT NULL,
    subject         TEXT    NOT NULL, -- id of the object that it is about
    state           TEXT    NOT NULL, -- queued, running, done, failed or cancelled
    sealed_input    BLOB, -- null: it is over
    done            INTEGER NOT NULL,
    total           INTEGER NOT NULL,
    result          TEXT    NOT NULL, -- JSON
    problem         TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    started_at      INTEGER NOT NULL,
    ended_at        INTEGER NOT NULL,
    node            TEXT    NOT NULL,
    lease_until     INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX jobs_organization ON jobs (organization_id, id);
CREATE INDEX jobs_user ON jobs (organization_id, user_id, id);
CREATE INDEX jobs_state ON jobs (state, ended_at);
