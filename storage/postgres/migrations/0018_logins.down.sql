DROP TABLE used_assertions;
DROP TABLE signing_keys;
DROP TABLE registered_clients;
DROP TABLE agent_credentials;
DROP TABLE consents;
DROP TABLE logins;
