-- oldest writer: 3
-- An object that an applied file declares. It may be gone by now.
CREATE TABLE declared_objects (
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    kind            TEXT COLLATE "C" NOT NULL, -- as in events of the audit log
    object_id       TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (organization_id, kind, object_id)
);
ALTER TABLE declared_objects ENABLE ROW LEVEL SECURITY;
ALTER TABLE declared_objects FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON declared_objects USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
