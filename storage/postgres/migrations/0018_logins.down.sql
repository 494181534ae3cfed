DROP TABLE used_assertions;
DROP TABLE signing_keys;
DROP TABLE registered_clients;
DROP TABLE agent_credentials;
DROP TABLE consents;
DROP TABLE logins;
ALTER TABLE agents DROP CONSTRAINT agents_external_id;
ALTER TABLE agents ADD CONSTRAINT agents_external_id UNIQUE (organization_id, external_id);
