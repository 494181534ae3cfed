-- oldest writer: 3
CREATE TABLE revocations (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL, -- which may be gone by now
    sealed          BYTEA            NOT NULL,
    created_at      BIGINT           NOT NULL,
    next_at         BIGINT           NOT NULL,
    attempts        BIGINT           NOT NULL
);
CREATE INDEX revocations_organization ON revocations (organization_id);
CREATE INDEX revocations_due ON revocations (next_at);
ALTER TABLE revocations ENABLE ROW LEVEL SECURITY;
ALTER TABLE revocations FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON revocations USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
