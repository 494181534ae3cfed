ALTER TABLE audit_records ADD COLUMN mac BLOB; -- null: a durward before MACs wrote it
ALTER TABLE audit_heads ADD COLUMN mac BLOB;
ALTER TABLE audit_chunks ADD COLUMN mac BLOB; -- of the last record
