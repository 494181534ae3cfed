ALTER TABLE users DROP COLUMN facts;
ALTER TABLE users DROP COLUMN facts_at;
ALTER TABLE api_keys DROP COLUMN agent_id;
ALTER TABLE api_keys DROP COLUMN made_with;
