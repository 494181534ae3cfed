ALTER TABLE servers DROP COLUMN last_error;
ALTER TABLE servers DROP COLUMN last_seen_at;
