ALTER TABLE usage_batches ADD COLUMN added_at INTEGER NOT NULL DEFAULT 9223372036854775807; -- of the last batch; the default: a durward before this column added it
