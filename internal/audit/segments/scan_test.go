package segments

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/durward-gateway/durward/internal/audit/format"
)

// TestScan checks what is found in a segment's file: what the gateway wrote, whatever stands beside it.
func TestScan(t *testing.T) {
	j := newJournal(1)
	j.record(acme, nil)
	j.record(acme, nil)
	j.checkpoint(nil)
	j.number, j.hash = 9, "" // a second first line
	j.header()
	j.key = "forger"
	j.record(other, nil)
	j.record(acme, nil)
	j.checkpoint(func(c *format.Checkpoint) { c.Final = true })
	j.key = "gateway"
	j.lines = append(j.lines, "hello\n", "torn")
	dir := filepath.Join(t.TempDir(), node)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(Path(dir, 1), j.text(0, len(j.lines)), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Scan(Path(dir, 1), &Keys{MACs: key("gateway"), Signatures: key("gateway")})
	if err != nil {
		t.Fatal(err)
	}
	if all.Node != node || all.Segment != Name(1) || all.Header.Checkpoint != 4 || all.Checkpoint.Number != 5 || all.Final || all.Torn != 4 {
		t.Errorf("%+v", all)
	}
	if all.Size != int64(len(joined(j.lines))-4) || all.Records != 2 || len(all.Chains) != 1 || all.Chains[acme].Sequence != 2 {
		t.Errorf("%+v", all)
	}
	if all, err = Scan(Path(dir, 1), nil); err != nil || all.Records != 4 || !all.Final || all.Checkpoint.Number != 10 || all.Chains[acme].Sequence != 3 || all.Chains[other].Sequence != 1 {
		t.Errorf("without keys: %+v, %v", all, err)
	}
	if _, err := Scan(Path(dir, 2), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	disk := errors.New("the disk fails")
	if _, err := ScanFrom(io.MultiReader(strings.NewReader(joined(j.lines)), iotest.ErrReader(disk)), node, Name(1), nil); !errors.Is(err, disk) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// TestScanAfterEnd checks that a segment that goes on after its last checkpoint has not ended.
func TestScanAfterEnd(t *testing.T) {
	j := newJournal(1)
	j.checkpoint(func(c *format.Checkpoint) { c.Final = true })
	j.checkpoint(nil)
	for lines, final := range map[int]bool{1: false, 2: true, 3: false} {
		if all, err := ScanFrom(strings.NewReader(joined(j.lines[:lines])), node, Name(1), nil); err != nil || all.Final != final {
			t.Errorf("%d lines: ended %v, %v", lines, all.Final, err)
		}
	}
}

// TestBare checks that a first line alone does not excuse records from their MACs: an attacker can write one.
func TestBare(t *testing.T) {
	bare, present := &format.Header{Format: format.BareSegmentFormat}, &format.Header{Format: format.SegmentFormat}
	for _, c := range []struct {
		keys   *Keys
		header *format.Header
		want   bool
	}{{&Keys{Former: true}, bare, true}, {&Keys{}, bare, false}, {nil, bare, false}, {&Keys{Former: true}, present, false}, {&Keys{Former: true}, nil, false}} {
		if c.keys.Bare(c.header) != c.want {
			t.Errorf("%+v, %+v", c.keys, c.header)
		}
	}
	for _, former := range []bool{true, false} {
		j := newJournal(1)
		j.format, j.lines = format.BareSegmentFormat, nil
		j.header()
		line := `{"o":"` + acme + `","n":1,"h":"` + strings.Repeat("A", 43) + `","e":{"i":"x","t":1}}` + "\n"
		all, err := ScanFrom(strings.NewReader(j.lines[0]+line), node, Name(1), &Keys{MACs: key("gateway"), Signatures: key("gateway"), Former: former})
		if err != nil || (all.Records == 1) != former {
			t.Errorf("%d records, %v", all.Records, err)
		}
	}
}
