package cache

import (
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/durward-gateway/durward/storage"
)

// TestCompact checks that a compacted value reads as before, and lies in one piece.
func TestCompact(t *testing.T) {
	text := func(s string) string { return string([]byte(s)) }
	made := func() storage.Server {
		return storage.Server{
			ID: text("the id"), Slug: text("slug"), Status: storage.ServerStatus(text("active")), SealedClientSecret: []byte("secret"), CreatedAt: time.Unix(1, 0),
			Entry: storage.DirectoryEntry{URL: text("https://example.com"), Name: text("Name")},
		}
	}
	s := made()
	Compact(&s)
	if want := made(); !reflect.DeepEqual(s, want) {
		t.Errorf("%+v\nwas\n%+v", s, want)
	}
	first := uintptr(unsafe.Pointer(unsafe.StringData(s.ID)))
	for _, of := range []string{s.Slug, string(s.Status), s.Entry.URL, s.Entry.Name} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(of))); at-first > 64 {
			t.Errorf("%q lies elsewhere", of)
		}
	}
	compacted, want := storage.Policy{Tags: []string{text("a"), text("b")}, Rules: []storage.Rule{{Name: text("n"), Actions: []string{text("x"), text("y")}, Condition: []byte("{}")}}}, ""
	Compact(&compacted)
	first = uintptr(unsafe.Pointer(unsafe.StringData(compacted.Tags[0])))
	for _, of := range []string{compacted.Tags[0], compacted.Tags[1], compacted.Rules[0].Name, compacted.Rules[0].Actions[0], compacted.Rules[0].Actions[1]} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(of))); at-first != uintptr(len(want)) {
			t.Errorf("%q in a list lies elsewhere", of)
		}
		want += of
	}
	if want != "abnxy" || string(compacted.Rules[0].Condition) != "{}" {
		t.Errorf("%+v", compacted)
	}
	var nothing storage.Server
	Compact(&nothing)
	if !reflect.DeepEqual(nothing, storage.Server{}) {
		t.Errorf("%+v", nothing)
	}
}
