-- oldest writer: 3
-- The letters of users' subjects and addresses are compared without case. An index of lower() would not be used: lower() is not leakproof, so
-- that row-level security comes before it.
-- A user whom an organization's identity provider wrote. A deleted one stays, and keeps whom it matches out.
CREATE TABLE provisioned_users (
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    id              TEXT COLLATE "C" NOT NULL,
    user_name       TEXT COLLATE "C" NOT NULL,
    name_key        TEXT COLLATE "C" NOT NULL, -- in lower case
    external_id     TEXT COLLATE "C" NOT NULL,
    email           TEXT COLLATE "C" NOT NULL,
    email_key       TEXT COLLATE "C" NOT NULL, -- in lower case
    active          BIGINT NOT NULL,
    attributes      TEXT COLLATE "C" NOT NULL, -- JSON
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT NOT NULL,
    PRIMARY KEY (organization_id, id)
);
CREATE UNIQUE INDEX provisioned_users_name ON provisioned_users (organization_id, name_key);
CREATE INDEX provisioned_users_external ON provisioned_users (organization_id, external_id, deleted_at, id);
CREATE INDEX provisioned_users_email ON provisioned_users (organization_id, email_key);
CREATE INDEX provisioned_users_live ON provisioned_users (organization_id, deleted_at, id);
-- A user of the gateway who matched the former name of a provisioned user.
CREATE TABLE provisioned_links (
    organization_id TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    provisioned_id  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (organization_id, user_id),
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, provisioned_id) REFERENCES provisioned_users (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX provisioned_links_provisioned ON provisioned_links (organization_id, provisioned_id);
CREATE TABLE provisioned_groups (
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    id              TEXT COLLATE "C" NOT NULL,
    name            TEXT COLLATE "C" NOT NULL,
    name_key        TEXT COLLATE "C" NOT NULL, -- in lower case
    external_id     TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (organization_id, id)
);
CREATE UNIQUE INDEX provisioned_groups_name ON provisioned_groups (organization_id, name_key);
CREATE INDEX provisioned_groups_external ON provisioned_groups (organization_id, external_id);
CREATE TABLE provisioned_members (
    organization_id TEXT COLLATE "C" NOT NULL,
    group_id        TEXT COLLATE "C" NOT NULL,
    provisioned_id  TEXT COLLATE "C" NOT NULL, -- of a provisioned user
    PRIMARY KEY (organization_id, group_id, provisioned_id),
    FOREIGN KEY (organization_id, group_id) REFERENCES provisioned_groups (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, provisioned_id) REFERENCES provisioned_users (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX provisioned_members_user ON provisioned_members (organization_id, provisioned_id, group_id);
ALTER TABLE provisioned_users ENABLE ROW LEVEL SECURITY;
ALTER TABLE provisioned_users FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON provisioned_users USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
ALTER TABLE provisioned_links ENABLE ROW LEVEL SECURITY;
ALTER TABLE provisioned_links FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON provisioned_links USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
ALTER TABLE provisioned_groups ENABLE ROW LEVEL SECURITY;
ALTER TABLE provisioned_groups FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON provisioned_groups USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
ALTER TABLE provisioned_members ENABLE ROW LEVEL SECURITY;
ALTER TABLE provisioned_members FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON provisioned_members USING (current_setting('durward.organization', true) IN ('=' || organization_id, '*'));
