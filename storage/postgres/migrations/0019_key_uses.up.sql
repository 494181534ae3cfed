-- oldest writer: 3
ALTER TABLE api_keys ADD COLUMN used_at BIGINT NOT NULL DEFAULT -62135596800000000; -- the zero time
