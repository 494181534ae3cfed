-- oldest writer: 3
-- Agents had this by default, and it had no effect. It has one now, for those of whom it is said from here on.
UPDATE agents SET write_confirmations_required = 0 WHERE write_confirmations_required <> 0;
-- A piece of work that takes longer than a request.
CREATE TABLE jobs (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL, -- of whoever asked
    kind            TEXT COLLATE "C" NOT NULL,
    subject         TEXT COLLATE "C" NOT NULL, -- id of the object that it is about
    state           TEXT COLLATE "C" NOT NULL, -- queued, running, done, failed or cancelled
    sealed_input    BYTEA, -- null: it is over
    done            BIGINT           NOT NULL,
    total           BIGINT           NOT NULL,
    result          TEXT COLLATE "C" NOT NULL, -- JSON
    problem         TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT           NOT NULL,
    started_at      BIGINT           NOT NULL,
    ended_at        BIGINT           NOT NULL,
    node            TEXT COLLATE "C" NOT NULL,
    lease_until     BIGINT           NOT NULL,
    attempts        BIGINT           NOT NULL,
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX jobs_organization ON jobs (organization_id, id);
CREATE INDEX jobs_user ON jobs (organization_id, user_id, id);
CREATE INDEX jobs_state ON jobs (state, ended_at);
ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE jobs FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON jobs USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
