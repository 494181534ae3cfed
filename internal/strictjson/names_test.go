package strictjson

import "testing"

// TestNamesAreForgotten checks that after a text no names are left, and no memory that only a large text needs.
func TestNamesAreForgotten(t *testing.T) {
	for name, tc := range map[string]struct {
		set  nameSet
		kept bool
	}{
		"small":          {nameSet{make([]nameEntry, 1<<11), make([]uint32, 1<<13), make([]byte, 1<<15)}, true},
		"many names":     {nameSet{make([]nameEntry, 1<<11+1), make([]uint32, 1), make([]byte, 1)}, false},
		"a large table":  {nameSet{make([]nameEntry, 1), make([]uint32, 1<<13+1), make([]byte, 1)}, false},
		"much to decode": {nameSet{make([]nameEntry, 1), make([]uint32, 1), make([]byte, 1<<15+1)}, false},
	} {
		n := tc.set
		if n.reset(); len(n.names) > 0 || len(n.table) > 0 || len(n.decoded) > 0 {
			t.Errorf("%s: something is left", name)
		}
		if kept := cap(n.names) > 0 && cap(n.table) > 0 && cap(n.decoded) > 0; kept != tc.kept {
			t.Errorf("%s: memory is kept: %v", name, kept)
		}
	}
}

// TestNamesOfOneHash checks that names are the same when they are equal, not when their hashes are.
func TestNamesOfOneHash(t *testing.T) {
	src := []byte(manyMembers(hashFrom))
	s := NewScanner(src, Limits{})
	defer s.Release()
	var o ObjectFrame
	for s.OpenObject(&o); o.names.count < hashFrom && s.NextMember(&o); {
		s.Skip()
	}
	hash := s.names[3].tag
	if !s.find(&o.names, src, hash, []byte("k3")) || s.find(&o.names, src, hash, []byte("x3")) {
		t.Error("names are compared by their hashes")
	}
}
