package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/internal/audit/verify"
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
	f.Add(recordLine("", 10, new([32]byte), nil, []byte("{}")))
	f.Add([]byte(`{"o":"","n":1,"h":"`))
	f.Add([]byte(`{"checkpoint":{},"signature":""}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := former.NewParser().Parse(text)
		if err != nil {
			return
		}
		// A line has one spelling.
		var written []byte
		switch r := &l.Record; {
		case l.Header != nil:
			written = append(format.Marshal(l.Header), '\n')
		case l.Checkpoint != nil:
			written = format.AppendCheckpoint(nil, l.Checkpoint)
		case new(former.Parser).IsRecord(text):
			return // package former checks it
		default:
			written = recordLine(string(r.Organization), r.Sequence, &r.Hash, macOf(r), r.Text)
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
	node, original := filepath.Base(j.dir), readFile(f, segments.Path(j.dir, 1))
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
		appendFile(t, segments.Path(filepath.Join(root, node), 1), string(content))
		before, err := verify.Log(t.Context(), verify.Journals{Dir: root}, new(memory), sharedKeys())
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
		after, err := verify.Log(t.Context(), verify.Journals{Dir: root}, new(memory), sharedKeys())
		if err != nil || (len(before.Findings) > 0 && len(after.Findings) == 0) {
			t.Errorf("%v; before: %v", err, before.Findings)
		}
	})
}

func FuzzReadChunk(f *testing.F) {
	w := newChunk("n", "00000001", acme, new([32]byte), 1)
	chain := storage.AuditChain{OrganizationID: acme, Node: "n", Segment: "00000001"}
	e := intent("create_issue")
	e.At = time.Unix(1_800_000_000, 0) // the same in every process of the fuzzer
	e.ID = "0190ffff-0000-7000-8000-000000000001"
	brief := *e
	brief.ID, brief.ArgumentsDigest = "AAAAAAAAAA", "RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o"
	outcome := outcomeOf(e)
	outcome.At = e.At
	several := &storage.AuditEntry{ID: e.ID, At: e.At, Kind: storage.AuditCall, Event: "outcomes", Outcomes: []storage.AuditOutcome{*plainOutcome(e), *plainOutcome(&brief)}}
	for _, text := range [][]byte{
		format.AppendShared(format.AppendOwnOf(nil, e), format.AppendSharedOf(nil, e)), format.AppendEntry(nil, outcome), format.AppendEntry(nil, several),
		format.AppendShared(format.AppendOwnOf(nil, &brief), format.AppendSharedOf(nil, &brief)),
	} {
		hash, _ := format.Next(&chain, text, nil)
		w.add(chain.Sequence, &hash, text, e.At.UnixNano())
	}
	c, _ := w.finish(nil)
	if records, err := former.ReadChunk(&c); err != nil || len(records) != 4 {
		f.Fatalf("%d records, %v", len(records), err)
	}
	f.Add(c.Data)
	f.Add([]byte{format.ChunkFormat})
	f.Add(append([]byte{format.ChunkFormat - 1}, unpacked(f, &c)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		changed := c
		changed.Data = data
		records, err := former.ReadChunk(&changed)
		if err == nil && (len(records) != 4 || records[3].Hash != chain.Hash) {
			t.Errorf("%d other records are taken", len(records))
		}
	})
}

// macOf returns a record's MAC, or nothing when it has none.
func macOf(r *format.Record) []byte {
	if r.MAC == (storage.AuditMAC{}) {
		return nil
	}
	return r.MAC[:]
}
