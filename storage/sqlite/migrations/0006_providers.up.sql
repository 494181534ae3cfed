ALTER TABLE directory_entries ADD COLUMN options TEXT NOT NULL DEFAULT '{}';
ALTER TABLE oauth_clients ADD COLUMN secret_expires_at INTEGER NOT NULL DEFAULT -62135596800000000; -- the zero time
ALTER TABLE oauth_clients ADD COLUMN refresh_resource_off INTEGER NOT NULL DEFAULT 0;
ALTER TABLE oauth_clients ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
