-- oldest writer: 3
ALTER TABLE directory_entries ADD COLUMN options TEXT COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE oauth_clients ADD COLUMN secret_expires_at BIGINT NOT NULL DEFAULT -62135596800000000; -- the zero time
ALTER TABLE oauth_clients ADD COLUMN refresh_resource_off SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE oauth_clients ADD COLUMN refused SMALLINT NOT NULL DEFAULT 0;
