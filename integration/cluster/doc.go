// Package cluster tests several gateways on one PostgreSQL from outside: a change at one of them takes effect at all,
// also when connections break and nodes die. `make cluster-test` prints the figures of docs/postgresql.md.
package cluster
