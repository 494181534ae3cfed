// Package format has the forms of the audit log: entries as they are hashed and as they are shown, the hashes of chains,
// checkpoints, and the records in the segments of a journal and in the chunks of the store.
//
// A record is a sequence of fields. A field is a tag (one byte), the length of its value (uvarint), and the value. The
// table in field.go has every tag. A reader refuses an unknown tag: nobody could tell what it leaves out. A record has one
// spelling, because two spellings of one record could be told apart by nobody but an attacker.
package format

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed reports bytes that are no record.
var ErrMalformed = errors.New("malformed line")

// tag is the number of a field. A number is never used again for another field.
type tag byte

// These are the tags. No tag is a character with which a line of JSON begins.
const (
	tagOrganization tag = 1
	tagSequence     tag = 2
	tagHash         tag = 3
	tagMAC          tag = 4
	tagText         tag = 5
	tagPrevious     tag = 6
	tagMark         tag = 7
)

// fields is the table of all fields, by tag: the name and the bounds of the value's length.
var fields = [...]struct {
	name        string
	least, most int
}{
	tagOrganization: {"organization", 0, 64},
	tagSequence:     {"sequence", 1, 8}, // big-endian, without leading zeros
	tagHash:         {"hash", hashSize, hashSize},
	tagMAC:          {"mac", macSize, macSize},
	tagText:         {"text", 2, maxText},
	tagPrevious:     {"previous", hashSize, hashSize},
	tagMark:         {"mark", MarkSize, MarkSize},
}

const (
	hashSize = 32
	macSize  = 20
	// maxText is the most bytes of a text. It bounds what a crafted record can make a reader allocate.
	maxText = 64 << 20
	// MarkSize is the number of first bytes of a record's hash that a chunk has.
	MarkSize = 4
)

// String returns the name of a field, or its number when the table does not have it.
func (t tag) String() string {
	if t > 0 && int(t) < len(fields) {
		return fields[t].name
	}
	return fmt.Sprintf("field %d", byte(t))
}

// appendField appends a field.
func appendField[T string | []byte](b []byte, t tag, value T) []byte {
	return append(appendStart(b, t, len(value)), value...)
}

// appendStart appends a field without its value, which has this size.
func appendStart(b []byte, t tag, size int) []byte {
	return binary.AppendUvarint(append(b, byte(t)), uint64(size))
}

// cutField reads the first field. It accepts only lengths that the table allows, in the shortest spelling.
func cutField(b []byte) (t tag, value, rest []byte, err error) {
	if len(b) == 0 {
		return 0, nil, nil, fmt.Errorf("%w: a field is missing", ErrMalformed)
	}
	t = tag(b[0])
	if t == 0 || int(t) >= len(fields) {
		return t, nil, nil, fmt.Errorf("%w: field %d is not known to this durward", ErrMalformed, byte(t))
	}
	size, n := binary.Uvarint(b[1:])
	if n <= 0 || n > 1 && b[n] == 0 || size > uint64(len(b)-1-n) || size < uint64(fields[t].least) || size > uint64(fields[t].most) {
		return t, nil, nil, fmt.Errorf("%w: the length of its %v is impossible", ErrMalformed, t)
	}
	value = b[1+n : 1+n+int(size)]
	return t, value, b[1+n+int(size):], nil
}

// take reads the first field, which must have this tag.
func take(b []byte, want tag) (value, rest []byte, err error) {
	t, value, rest, err := cutField(b)
	if err == nil && t != want {
		err = fmt.Errorf("%w: its %v is where its %v should be", ErrMalformed, t, want)
	}
	return value, rest, err
}
