// Package postgres keeps the store of several nodes in one PostgreSQL database (14 or later), which all of them share.
//
// The records and their statements are in storage/records; this package is the PostgreSQL driver below them. Tables
// and columns are those of storage/sqlite (a test compares the two). All SQL is constant text with numbered
// parameters. Text compares by its bytes, whatever the locale.
//
// # Two walls
//
// Every statement names its organization, and row-level security shows it no other rows: each transaction names its
// organization in the setting durward.organization, which the policies of all tables compare with. Statements that
// read across organizations run in the scope records.Everyone, and nothing else does. The second wall does not hold
// superusers and roles with BYPASSRLS: Store.Check reports them.
//
// # Order
//
// Writes of one organization run one after the other, on whatever node, under an advisory lock of the transaction. So
// what a write has read stays true until it commits, as in SQLite, and an edit runs once. Exclusive edits
// (Store.UpdateConnection) hold an advisory lock of a connection that the node keeps for them.
//
// # Poolers
//
// The store works behind pgbouncer in session mode. In transaction mode it does not: edits are not exclusive there,
// other nodes' changes are not heard (LISTEN), and prepared statements and settings of the session get lost. Connect
// looks for such a pooler and refuses it (ErrPooled). One in session mode must let every node have max_conns
// sessions.
package postgres
