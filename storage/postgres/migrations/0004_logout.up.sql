-- oldest writer: 3
ALTER TABLE users ADD COLUMN logged_out_at BIGINT NOT NULL DEFAULT -62135596800000000; -- the zero time
