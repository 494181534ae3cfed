package strictjson

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// hashFrom is the number of members from which an object's names are looked up by hash. Below it comparing lengths and
// end bytes is faster.
const hashFrom = 16

// seed makes the hashes of this process unpredictable: an attacker cannot choose names that collide.
var seed = maphash.MakeSeed()

// nameSet finds duplicate member names, for all objects that are open at once: names, table and decoded are stacks,
// and only the innermost open object grows its part of them.
type nameSet struct {
	names   []nameEntry
	table   []uint32 // open addressing: index into the object's names, plus one
	decoded []byte   // names that were written with escapes
}

// nameEntry is one name: src[off:off+n], or decoded[off:off+n].
type nameEntry struct {
	tag     uint32 // quick inequality: see tagOf; the hash once the object has a table
	off, n  uint32
	decoded bool
}

// nameFrame holds one object's part of a nameSet.
type nameFrame struct {
	count          int // members so far
	names, decoded int // starts of its parts
	table, slots   int // slots is a power of two, or 0 without a table
}

func (n *nameSet) open() nameFrame {
	return nameFrame{names: len(n.names), decoded: len(n.decoded), table: len(n.table)}
}

func (n *nameSet) close(f *nameFrame) {
	n.names, n.decoded, n.table = n.names[:f.names], n.decoded[:f.decoded], n.table[:f.table]
}

// reset forgets all names, and frees the memory too when one text made it large.
func (n *nameSet) reset() {
	const keep = 1 << 11
	n.names, n.table, n.decoded = n.names[:0], n.table[:0], n.decoded[:0]
	if cap(n.names) > keep || cap(n.table) > 4*keep || cap(n.decoded) > 16*keep {
		*n = nameSet{}
	}
}

// add adds src[from:to], the inside of a name, to the innermost object. It returns the decoded name, and false when
// the object has it already.
func (n *nameSet) add(f *nameFrame, src []byte, from, to int, escaped bool) ([]byte, bool) {
	e := nameEntry{off: uint32(from), n: uint32(to - from)}
	name := src[from:to]
	if escaped {
		at := len(n.decoded)
		n.decoded = AppendUnescaped(n.decoded, name)
		name = n.decoded[at:]
		e.off, e.n, e.decoded = uint32(at), uint32(len(name)), true
	}
	if f.slots > 0 {
		e.tag = hashOf(name)
		if n.find(f, src, e.tag, name) {
			return name, false
		}
	} else {
		e.tag = tagOf(name)
		for i := range n.names[f.names:] {
			if o := &n.names[f.names+i]; o.tag == e.tag && bytes.Equal(n.text(o, src), name) {
				return name, false
			}
		}
	}
	n.names = append(n.names, e)
	f.count++
	switch {
	case f.count == hashFrom:
		for i := range n.names[f.names:] {
			o := &n.names[f.names+i]
			o.tag = hashOf(n.text(o, src))
		}
		n.rehash(f, 4*hashFrom)
	case f.slots > 0 && 2*f.count > f.slots:
		n.rehash(f, 4*f.slots)
	case f.slots > 0:
		n.place(f, f.count)
	}
	return name, true
}

func (n *nameSet) text(e *nameEntry, src []byte) []byte {
	if e.decoded {
		return n.decoded[e.off : e.off+e.n]
	}
	return src[e.off : e.off+e.n]
}

func (n *nameSet) find(f *nameFrame, src []byte, hash uint32, name []byte) bool {
	table, mask := n.table[f.table:], uint32(f.slots-1)
	for i := hash & mask; table[i] != 0; i = (i + 1) & mask {
		if e := &n.names[f.names+int(table[i])-1]; e.tag == hash && bytes.Equal(n.text(e, src), name) {
			return true
		}
	}
	return false
}

// place enters the object's name number i, counted from 1, into the table.
func (n *nameSet) place(f *nameFrame, i int) {
	table, mask := n.table[f.table:], uint32(f.slots-1)
	slot := n.names[f.names+i-1].tag & mask
	for table[slot] != 0 {
		slot = (slot + 1) & mask
	}
	table[slot] = uint32(i)
}

// rehash gives the object a table of that many slots, with all of its names in it.
func (n *nameSet) rehash(f *nameFrame, slots int) {
	f.slots = slots
	n.table = slices.Grow(n.table[:f.table], slots)[:f.table+slots]
	clear(n.table[f.table:])
	for i := range f.count {
		n.place(f, i+1)
	}
}

// tagOf returns a value that differs for most names that differ.
func tagOf(name []byte) uint32 {
	l := len(name)
	if l == 0 {
		return 0
	}
	return uint32(l)<<16 | uint32(name[0])<<8 | uint32(name[l-1])
}

func hashOf(name []byte) uint32 { return uint32(maphash.Bytes(seed, name)) }
