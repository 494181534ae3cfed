-- A user whom an organization's identity provider wrote. A deleted one stays, and keeps whom it matches out.
CREATE TABLE provisioned_users (
    organization_id TEXT    NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    id              TEXT    NOT NULL,
    user_name       TEXT    NOT NULL,
    name_key        TEXT    NOT NULL, -- in lower case
    external_id     TEXT    NOT NULL,
    email           TEXT    NOT NULL,
    email_key       TEXT    NOT NULL, -- in lower case
    active          INTEGER NOT NULL,
    attributes      TEXT    NOT NULL, -- JSON
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    deleted_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX provisioned_users_name ON provisioned_users (organization_id, name_key);
CREATE INDEX provisioned_users_external ON provisioned_users (organization_id, external_id, deleted_at, id);
CREATE INDEX provisioned_users_email ON provisioned_users (organization_id, email_key);
CREATE INDEX provisioned_users_live ON provisioned_users (organization_id, deleted_at, id);
-- A user of the gateway who matched the former name of a provisioned user.
CREATE TABLE provisioned_links (
    organization_id TEXT NOT NULL,
    user_id         TEXT NOT NULL,
    provisioned_id  TEXT NOT NULL,
    PRIMARY KEY (organization_id, user_id),
    FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, provisioned_id) REFERENCES provisioned_users (organization_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX provisioned_links_provisioned ON provisioned_links (organization_id, provisioned_id);
CREATE TABLE provisioned_groups (
    organization_id TEXT    NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    id              TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    name_key        TEXT    NOT NULL, -- in lower case
    external_id     TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX provisioned_groups_name ON provisioned_groups (organization_id, name_key);
CREATE INDEX provisioned_groups_external ON provisioned_groups (organization_id, external_id);
CREATE TABLE provisioned_members (
    organization_id TEXT NOT NULL,
    group_id        TEXT NOT NULL,
    provisioned_id  TEXT NOT NULL, -- of a provisioned user
    PRIMARY KEY (organization_id, group_id, provisioned_id),
    FOREIGN KEY (organization_id, group_id) REFERENCES provisioned_groups (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, provisioned_id) REFERENCES provisioned_users (organization_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX provisioned_members_user ON provisioned_members (organization_id, provisioned_id, group_id);
CREATE INDEX users_subject_key ON users (organization_id, lower(subject));
CREATE INDEX users_email_key ON users (organization_id, lower(email));
