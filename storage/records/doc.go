// Package records holds the parts that all stores share: the statements, how rows are read and written, and the logic
// of the transactions. A store's own package (storage/sqlite, storage/postgres) is a Driver, which knows its
// database, and gives in a Dialect the words that differ in its database.
//
// All SQL is constant text with numbered parameters; a test checks that. Statements that depend on the dialect are
// made when the store is, also from constants.
//
// # Organizations
//
// Every statement names its organization. In addition, work is done in a Scope: a driver that can lets the database
// show no other rows. Work across organizations has the scope Everyone, and nothing else does.
package records
