// Package cluster looks at several gateways on one PostgreSQL from outside: what one of them is told, all of them do, also
// when connections break and nodes die. `make cluster-test` prints the figures of docs/postgresql.md.
package cluster
