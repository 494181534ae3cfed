CREATE TABLE revocations (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL, -- which may be gone by now
    sealed          BLOB    NOT NULL,
    created_at      INTEGER NOT NULL,
    next_at         INTEGER NOT NULL,
    attempts        INTEGER NOT NULL
) STRICT;
CREATE INDEX revocations_organization ON revocations (organization_id);
CREATE INDEX revocations_due ON revocations (next_at);
