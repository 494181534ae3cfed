ALTER TABLE connections ADD COLUMN wanted_scope TEXT NOT NULL DEFAULT '';
