ALTER TABLE api_keys DROP COLUMN used_at;
