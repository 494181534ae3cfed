-- oldest writer: 3
ALTER TABLE connections ADD COLUMN wanted_scope TEXT COLLATE "C" NOT NULL DEFAULT '';
