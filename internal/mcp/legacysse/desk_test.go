package legacysse

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/proxy/sse"
)

func TestMerged(t *testing.T) {
	var desk Desk
	if desk.Deliver("a", []byte("{}")) {
		t.Error("delivered to nobody")
	}
	src, feed := io.Pipe()
	box := desk.NewBox()
	merged := box.Merge(src, 1<<10)
	read := func() string {
		t.Helper()
		var got strings.Builder
		p := make([]byte, 5)
		for !strings.HasSuffix(got.String(), "\n\n") {
			n, err := merged.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			got.Write(p[:n])
		}
		return got.String()
	}
	write := func(s string) {
		if _, err := io.WriteString(feed, s); err != nil {
			t.Error(err)
		}
	}
	go write("event: endpoint\ndata: /x\n\n")
	if got := read(); got != "event: endpoint\ndata: /x\n\n" {
		t.Errorf("got %q", got)
	}
	box.Open("a")
	// An event is not torn: delivered messages wait for its end.
	write("data: half")
	if !desk.Deliver("a", []byte(`{"id":1}`)) || desk.Deliver("b", []byte(`{"id":2}`)) {
		t.Error("delivered to the wrong stream")
	}
	if got := read(); got != "event: message\ndata: {\"id\":1}\n\n" {
		t.Errorf("got %q", got)
	}
	go write(" and half\n\n")
	if got := read(); got != "data: half and half\n\n" {
		t.Errorf("got %q", got)
	}
	for range waiting {
		desk.Deliver("a", []byte("{}"))
	}
	if desk.Deliver("a", []byte("{}")) {
		t.Error("more waits than may")
	}
	broken := errors.New("broken")
	_ = feed.CloseWithError(broken)
	for {
		if _, err := merged.Read(make([]byte, 64)); err != nil {
			if !errors.Is(err, broken) {
				t.Errorf("the stream ends with %v", err)
			}
			break
		}
	}
	merged.Close()
	if desk.Deliver("a", []byte("{}")) {
		t.Error("delivered to a closed stream")
	}
}

// TestMergedHoldsOnce checks W01: an event that passed a filter is not copied again to wait for its client.
func TestMergedHoldsOnce(t *testing.T) {
	var held []byte
	src := sse.NewRewriter(strings.NewReader("data: abc\n\n"), 1<<10, func(data []byte) ([]byte, bool) {
		held = data
		return nil, false
	})
	merged := new(Desk).NewBox().Merge(src, 1<<10)
	defer merged.Close()
	lent, err := merged.Lend(8)
	if err != nil || string(lent) != "data: ab" || &lent[6] != &held[0] {
		t.Errorf("lent %q, %v", lent, err)
	}
	if lent, err := merged.Lend(8); err != nil || string(lent) != "c\n\n" {
		t.Errorf("lent %q, %v", lent, err)
	}
	if lent, err := merged.Lend(8); !errors.Is(err, io.EOF) {
		t.Errorf("lent %q, %v", lent, err)
	}
}
