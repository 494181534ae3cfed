package app

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

func TestClipNames(t *testing.T) {
	e := storage.AuditEntry{Method: strings.Repeat("m", 4<<20), Tool: "file:///" + strings.Repeat("é", 2<<20)}
	clipNames(&e)
	if len(e.Method) != maxKeptMethod || len(e.Tool) != MaxKeptName || e.Detail["name_bytes"] != 8+(4<<20) {
		t.Errorf("%d and %d bytes, %v", len(e.Method), len(e.Tool), e.Detail)
	}
	e = storage.AuditEntry{Method: "resources/read", Tool: "x" + strings.Repeat("é", MaxKeptName)}
	if clipNames(&e); len(e.Tool) != MaxKeptName-1 || !strings.HasSuffix(e.Tool, "é") {
		t.Errorf("cut inside a character: %d bytes", len(e.Tool))
	}
	if cut := short("x" + strings.Repeat("é", 256)); len(cut) != 255 || !strings.HasSuffix(cut, "é") {
		t.Errorf("cut inside a character: %d bytes", len(cut))
	}
	e = storage.AuditEntry{Method: "tools/call", Tool: "search"}
	if clipNames(&e); e.Method != "tools/call" || e.Tool != "search" || e.Detail != nil {
		t.Errorf("%+v", e)
	}
}
