package format

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/durward-gateway/durward/storage"
)

// ChainOf returns a chain that has no record yet.
func ChainOf(organization, node, segment string) storage.AuditChain {
	return storage.AuditChain{OrganizationID: organization, Node: node, Segment: segment}
}

// Next adds a record with this text to the chain. It builds the bytes to hash in scratch.
func Next(c *storage.AuditChain, text, scratch []byte) (hash [sha256.Size]byte, used []byte) {
	own, part := SplitShared(text)
	switch {
	case part != nil:
		digest := sha256.Sum256(part)
		scratch = append(AppendLink(scratch[:0], c, SharedLinkMark), digest[:]...)
		scratch = append(scratch, own...)
	case IsShort(text):
		scratch = append(AppendLink(scratch[:0], c, LinkMark), text...)
	default:
		scratch = appendLongLink(scratch[:0], c, text)
	}
	return Link(c, scratch), scratch
}

// Link adds a record to a chain. hashed holds the bytes to hash for it.
func Link(c *storage.AuditChain, hashed []byte) [sha256.Size]byte {
	c.Hash = sha256.Sum256(hashed)
	c.Sequence++
	return c.Hash
}

// These marks separate the hashed bytes of records with short entries from those with a shared part, and from those with
// long entries. At the position of the mark, long entries have the first byte of a length, which is always 0.
const (
	LinkMark       = 2
	SharedLinkMark = 3
)

// LinkSize is the number of bytes that appendLink appends.
const LinkSize = sha256.Size + 1 + 8

// AppendLink appends the first of the bytes that are hashed for the next record of a chain when its entry is short: the
// hash before it, a mark and its sequence. The text follows. Before the first record of a chain it uses the hash of the
// chain's name, so that every hash depends on the name.
func AppendLink(b []byte, c *storage.AuditChain, mark byte) []byte {
	before := c.Hash
	if c.Sequence == 0 && before == ([sha256.Size]byte{}) {
		before = c.NameHash()
	}
	b = append(append(b, before[:]...), mark)
	return binary.BigEndian.AppendUint64(b, uint64(c.Sequence+1))
}

// appendLongLink appends the bytes that are hashed for the next record of a chain when its entry is long, as
// storage.AuditChain.Next does.
func appendLongLink(b []byte, c *storage.AuditChain, text []byte) []byte {
	b = c.AppendName(append(b, c.Hash[:]...))
	b = binary.BigEndian.AppendUint64(b, uint64(len(text)))
	b = append(b, text...)
	return binary.BigEndian.AppendUint64(b, uint64(c.Sequence+1))
}
