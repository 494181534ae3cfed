package record

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

func TestClipNames(t *testing.T) {
	e := storage.AuditEntry{Method: strings.Repeat("m", 4<<20), Tool: "file:///" + strings.Repeat("é", 2<<20)}
	ClipNames(&e)
	if len(e.Method) != MaxMethod || len(e.Tool) != MaxName || e.Detail["name_bytes"] != 8+(4<<20) {
		t.Errorf("%d and %d bytes, %v", len(e.Method), len(e.Tool), e.Detail)
	}
	e = storage.AuditEntry{Method: "resources/read", Tool: "x" + strings.Repeat("é", MaxName)}
	if ClipNames(&e); len(e.Tool) != MaxName-1 || !strings.HasSuffix(e.Tool, "é") {
		t.Errorf("cut inside a character: %d bytes", len(e.Tool))
	}
	if cut := Short("x" + strings.Repeat("é", 256)); len(cut) != 255 || !strings.HasSuffix(cut, "é") {
		t.Errorf("cut inside a character: %d bytes", len(cut))
	}
	for text, want := range map[string]string{"": "", "abc": "abc", "abcd": "abc", "ab\xc3\xa9": "ab", "\x80\x80\x80\x80": ""} {
		if got := Clip(text, 3); got != want {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
	e = storage.AuditEntry{Method: strings.Repeat("m", MaxMethod), Tool: strings.Repeat("t", MaxName)}
	if ClipNames(&e); len(e.Method) != MaxMethod || len(e.Tool) != MaxName || e.Detail != nil {
		t.Errorf("of the greatest length: %d and %d bytes, %v", len(e.Method), len(e.Tool), e.Detail)
	}
	e = storage.AuditEntry{Method: "tools/call", Tool: "search"}
	if ClipNames(&e); e.Method != "tools/call" || e.Tool != "search" || e.Detail != nil {
		t.Errorf("%+v", e)
	}
}
