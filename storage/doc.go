// Package storage defines the domain's vocabulary (records, status words, errors, paging) and the seams between the
// gateway and its databases. It imports only the standard library, and has neither SQL nor input and output.
//
// The seams are interfaces. Every store is a Store (storage/sqlite, storage/postgres) and passes the behaviour suite of
// storage/storagetest. A store over the network is also a RemoteStore. Counters that several nodes share are
// SharedCounters. The statements of both stores are in storage/records. No code of the gateway outside storage uses
// SQL.
//
// Every record belongs to an organization and every method that reads or changes one takes the organization's id: a
// record of another organization is answered with ErrNotFound, exactly like an unknown id.
//
// Ids are UUIDs in canonical lower-case text. Times are UTC with microsecond precision. Fields named Sealed hold
// ciphertext of internal/seal; no driver ever sees the plaintext.
package storage
