// Package records holds what the stores know of records, once for all of them: the statements, how rows are read and
// written, and the logic of the transactions. A store's own package (storage/sqlite, storage/postgres) is a Driver, which
// knows its database, and says in a Dialect what its database has other words for.
//
// All SQL is constant text with numbered parameters; a test holds that. Statements that a dialect has a word in are made
// when the store is, of constants too.
//
// # Organizations
//
// Every statement names its organization. Work is done in a Scope besides: a driver that can lets the database show no
// other rows. What looks across organizations says Everyone, and nothing else does.
package records
