#!/bin/sh
# Runs once, when the database server has no data yet: a role that owns its database and is no superuser, because
# row-level security does not bind superusers.
set -eu
psql -v ON_ERROR_STOP=1 -U postgres -d postgres <<'SQL'
\set password `cat /run/secrets/durward_database_password`
CREATE ROLE durward LOGIN PASSWORD :'password';
CREATE DATABASE durward OWNER durward ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT ON DATABASE durward FROM PUBLIC;
SQL
