ALTER TABLE oauth_clients DROP COLUMN refused;
ALTER TABLE oauth_clients DROP COLUMN refresh_resource_off;
ALTER TABLE oauth_clients DROP COLUMN secret_expires_at;
ALTER TABLE directory_entries DROP COLUMN options;
