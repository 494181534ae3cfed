#!/bin/sh
# Makes the secrets that are not there yet, in ./secrets. Keep durward_key: nothing in the database can be read without it.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
make() { # make NAME COMMAND...
  name=$1
  shift
  [ -s "secrets/$name" ] || "$@" >"secrets/$name"
}
make durward_key openssl rand -base64 32
make durward_database_password openssl rand -hex 24
make postgres_password openssl rand -hex 24
# Inside the network `back`, which leaves this machine nowhere. Anywhere else: sslmode=verify-full.
make durward_database printf 'postgres://durward:%s@postgres/durward?sslmode=disable' "$(cat secrets/durward_database_password)"
# What counts is gone after two minutes anyway: nothing is written to disk, and nothing is thrown out to make room.
make valkey_conf printf 'requirepass %s\nsave ""\nappendonly no\nmaxmemory 256mb\nmaxmemory-policy noeviction\n' "$(openssl rand -hex 24)"
make durward_valkey printf 'valkey://default:%s@valkey:6379' "$(sed -n 's/^requirepass //p' secrets/valkey_conf)"
# Compose mounts these files as they are, and the containers' users are not yours; the folder keeps others out.
chmod 0700 secrets
chmod 0444 secrets/*
