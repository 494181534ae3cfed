package postgres

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/durward-gateway/durward/storage/records"
)

// lockKey is the key of an advisory lock of the database.
type lockKey int64

// noLock means no lock.
const noLock lockKey = 0

// migrationLock is held while the schema is changed.
var migrationLock = newLockKey("migration")

// keyOf returns the key of a lock of the records.
func keyOf(lock records.Lock) lockKey {
	switch lock.Kind {
	case records.OrganizationLock:
		return newLockKey("organization", lock.Organization)
	case records.IdentityLock:
		return newLockKey("identity")
	case records.DirectoryLock:
		return newLockKey("directory")
	default:
		return noLock
	}
}

// newLockKey returns a hash of the names. Two objects with one key would only wait for each other.
func newLockKey(names ...string) lockKey {
	h := sha256.New()
	h.Write([]byte("durward"))
	for _, name := range names {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(name))))
		h.Write([]byte(name))
	}
	return lockKey(binary.BigEndian.Uint64(h.Sum(nil)[:8])) | 1 // never noLock
}
