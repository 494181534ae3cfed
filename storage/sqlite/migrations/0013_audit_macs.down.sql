ALTER TABLE audit_records DROP COLUMN mac;
ALTER TABLE audit_heads DROP COLUMN mac;
ALTER TABLE audit_chunks DROP COLUMN mac;
