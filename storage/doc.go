// Package storage holds the domain's vocabulary (records, status words, errors, paging) and the interface that all
// stores implement. It imports only the standard library. Drivers (storage/sqlite) implement Store and pass the
// behaviour suite of storage/storagetest; nothing else in the project uses SQL.
//
// Every record belongs to an organization and every method that reads or changes one takes the organization's id: a
// record of another organization is answered with ErrNotFound, exactly like an unknown id.
//
// Ids are UUIDs in canonical lower-case text. Times are UTC with microsecond precision. Fields named Sealed hold
// ciphertext of internal/seal; no driver ever sees the plaintext.
package storage
