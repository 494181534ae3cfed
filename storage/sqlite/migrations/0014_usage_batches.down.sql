ALTER TABLE usage_batches DROP COLUMN added_at;
