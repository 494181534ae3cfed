-- oldest writer: 3
ALTER TABLE servers ADD COLUMN last_seen_at BIGINT NOT NULL DEFAULT -62135596800000000; -- the zero time
ALTER TABLE servers ADD COLUMN last_error TEXT COLLATE "C" NOT NULL DEFAULT '';
