// Package sqlite keeps the store of a single node in one SQLite file in WAL mode, synced on every commit. The records
// and their statements are in storage/records; this package is the SQLite driver below them.
//
// Writes go through one connection, one after the other; reads use a small pool of read-only connections and see
// every commit that returned before they began. All SQL is constant text with numbered parameters (a test checks
// that).
//
// Exclusive edits (Store.UpdateConnection) are held by a lock in this process, so one process serves a file at a
// time. A second process may read it and write other things; when it changes a connection under an edit, the edit is
// refused.
package sqlite
