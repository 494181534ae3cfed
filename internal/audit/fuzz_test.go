package audit

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func FuzzParseLine(f *testing.F) {
	j := openJournal(f, testOptions(f, f.TempDir()))
	calls(f, j, acme, 2)
	if err := j.Checkpoint(); err != nil {
		f.Fatal(err)
	}
	for _, text := range strings.Split(readSegment(f, j.dir, 1), "\n") {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"o":"","n":1,"h":"`))
	f.Add([]byte(`{"checkpoint":{},"signature":""}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := new(parser).parse(text)
		if err != nil {
			return
		}
		// A line has one spelling.
		var written []byte
		switch r := &l.record; {
		case l.header != nil:
			written = append(marshal(l.header), '\n')
		case l.checkpoint != nil:
			written = appendCheckpoint(nil, l.checkpoint)
		default:
			var mac []byte
			if r.mac != (storage.AuditMAC{}) {
				mac = r.mac[:]
			}
			written = append(appendRecord(nil, string(r.organization), r.sequence, &r.hash, mac), r.text...)
			switch {
			case r.shared == nil:
			case r.shared.lost:
				written = appendReference(written, r.shared.sequence)
			default:
				written = appendShared(written, r.shared.text)
			}
			written = append(written, lineEnd...)
		}
		if string(written) != string(text)+"\n" {
			t.Errorf("%q is written %q", text, written)
		}
	})
}

func FuzzSegment(f *testing.F) {
	dir := f.TempDir()
	j := openJournal(f, testOptions(f, dir))
	calls(f, j, acme, 3)
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	node, original := filepath.Base(j.dir), readFile(f, segmentPath(j.dir, 1))
	f.Add([]byte(original[:len(original)/2] + "\x00\x00"))
	f.Add([]byte(original))
	f.Add([]byte(original[:len(original)/2]))
	f.Add([]byte("\n\n{"))
	f.Add([]byte("000"))
	f.Fuzz(func(t *testing.T, content []byte) {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, node), 0o700); err != nil {
			t.Fatal(err)
		}
		appendFile(t, segmentPath(filepath.Join(root, node), 1), string(content))
		before, err := Verify(t.Context(), Journals{Dir: root}, new(memory), sharedKeys())
		if err != nil {
			t.Fatal(err)
		}
		// An unfinished line, and bytes after a NUL byte, were never acknowledged. The checkpoint of the next start
		// states their number.
		written, _, _ := strings.Cut(string(content), "\x00")
		written = written[:strings.LastIndex(written, "\n")+1]
		if len(before.Findings) == 0 && !strings.HasPrefix(original, written) {
			t.Errorf("nothing was found in %q", content)
		}
		// With any file, the next start succeeds and hides nothing.
		next, err := Open(testOptions(t, root))
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		if err := next.Append(acme, intent("after")); err != nil {
			t.Fatal(err)
		}
		if err := newShipper(next, new(memory)).ship(t.Context()); err != nil {
			t.Fatal(err)
		}
		after, err := Verify(t.Context(), Journals{Dir: root}, new(memory), sharedKeys())
		if err != nil || (len(before.Findings) > 0 && len(after.Findings) == 0) {
			t.Errorf("%v; before: %v", err, before.Findings)
		}
	})
}

func FuzzReadChunk(f *testing.F) {
	w := newChunk("n", "00000001", acme, new([32]byte), 1, nil)
	chain := storage.AuditChain{OrganizationID: acme, Node: "n", Segment: "00000001"}
	e := intent("create_issue")
	e.At = time.Unix(1_800_000_000, 0) // the same in every process of the fuzzer
	e.ID = "0190ffff-0000-7000-8000-000000000001"
	brief := *e
	brief.ID, brief.ArgumentsDigest = "AAAAAAAAAA", "RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o"
	outcome, s := outcomeOf(e), newShared(appendSharedOf(nil, e))
	outcome.At = e.At
	several := &storage.AuditEntry{ID: e.ID, At: e.At, Kind: storage.AuditCall, Event: "outcomes", Outcomes: []storage.AuditOutcome{*plainOutcome(e), *plainOutcome(&brief)}}
	for _, r := range []record{
		{text: appendOwnOf(nil, e), shared: s}, {text: appendEntry(nil, outcome)}, {text: appendEntry(nil, several)}, {text: appendOwnOf(nil, &brief), shared: s},
	} {
		r.hash, _ = nextOf(&chain, &r, nil)
		r.sequence = chain.Sequence
		w.add(&r, e.At.UnixNano())
	}
	c, _ := w.finish(nil)
	if records, err := ReadChunk(&c); err != nil || len(records) != 4 {
		f.Fatalf("%d records, %v", len(records), err)
	}
	f.Add(c.Data)
	f.Add([]byte{chunkFormat})
	body, err := unpack(c.Data)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append([]byte{rawChunkFormat}, body...))
	// It repeats more bytes of the record before than that record has.
	repeating := append(slices.Clone(body[:2*sha256.Size]), briefKind, 0, 0, 0, 0, 'A', 'A', 'A', 'A', 'A', 'A', 'A', 'A', 'A', 'A', 0, 200)
	f.Add(append([]byte{rawChunkFormat}, repeating...))
	f.Fuzz(func(t *testing.T, data []byte) {
		changed := c
		changed.Data = data
		records, err := ReadChunk(&changed)
		if err == nil && (len(records) != 4 || records[3].Hash != chain.Hash) {
			t.Errorf("%d other records are taken", len(records))
		}
	})
}
