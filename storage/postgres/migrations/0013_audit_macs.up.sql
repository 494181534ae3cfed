-- oldest writer: 3
ALTER TABLE audit_records ADD COLUMN mac BYTEA; -- null: a durward before MACs wrote it
ALTER TABLE audit_heads ADD COLUMN mac BYTEA;
ALTER TABLE audit_chunks ADD COLUMN mac BYTEA; -- of the last record
