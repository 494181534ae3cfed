ALTER TABLE connections DROP COLUMN wanted_scope;
