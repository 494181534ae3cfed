-- An object that an applied file declares. It may be gone by now.
CREATE TABLE declared_objects (
    organization_id TEXT NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    kind            TEXT NOT NULL, -- as in events of the audit log
    object_id       TEXT NOT NULL,
    PRIMARY KEY (organization_id, kind, object_id)
) STRICT, WITHOUT ROWID;
