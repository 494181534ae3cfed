package postgres

import (
	"crypto/sha256"
	"encoding/binary"
)

// lockKey is the key of an advisory lock of the database.
type lockKey int64

// noLock is no lock.
const noLock lockKey = 0

// Locks that are not an organization's. The text before the first zero byte tells kinds of locks apart.
var (
	migrationLock = newLockKey("migration")
	identityLock  = newLockKey("identity") // who is who, across organizations
	directoryLock = newLockKey("directory")
)

func organizationLock(organization string) lockKey { return newLockKey("organization", organization) }

// newLockKey hashes what is locked. Two things with one key would only wait for each other.
func newLockKey(names ...string) lockKey {
	h := sha256.New()
	h.Write([]byte("durward"))
	for _, name := range names {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(name))))
		h.Write([]byte(name))
	}
	return lockKey(binary.BigEndian.Uint64(h.Sum(nil)[:8])) | 1 // never noLock
}
