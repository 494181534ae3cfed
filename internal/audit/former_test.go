package audit

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/internal/audit/verify"
	"github.com/durward-gateway/durward/storage"
)

// formerLog holds what a store has of the journal in testdata/former.
type formerLog struct {
	Chunks      []storage.AuditChunk
	Records     []storage.AuditRecord
	Checkpoints []storage.AuditCheckpoint
}

const jsonNode = "0011223344556677"

// formerJournal copies the journal and the store that a former durward has left, killed in its second segment, with an
// unfinished last line.
func formerJournal(t *testing.T) (root string, store *memory) {
	t.Helper()
	root = t.TempDir()
	if err := os.CopyFS(root, os.DirFS(filepath.Join("testdata", "former", "journal"))); err != nil {
		t.Fatal(err)
	}
	var l formerLog
	if err := json.Unmarshal([]byte(readFile(t, filepath.Join("testdata", "former", "store.json"))), &l); err != nil {
		t.Fatal(err)
	}
	return root, &memory{chunks: l.Chunks, records: l.Records, checkpoints: l.Checkpoints}
}

// wantFormer compares a text with what the former durward has made of the same journal and store.
func wantFormer(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "former", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(readFile(t, path), got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// exportedLines returns the lines of an export of all organizations.
func exportedLines(t *testing.T, root string, store *memory) (lines []string) {
	t.Helper()
	if err := query.Everything(t.Context(), root, store, "*", time.Unix(0, 0), time.Now().AddDate(1, 0, 0), func(r *storage.AuditRecord) error {
		lines = append(lines, string(format.Marshal(format.Export(r)))+"\n")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestFormerJournal checks that a journal of the former durward, and what it has shipped of it, are verified, exported,
// continued, shipped and queried as the former durward did it.
func TestFormerJournal(t *testing.T) {
	root, store := formerJournal(t)
	keys := verify.Keys{Signatures: knownSigner{}, MACs: knownSigner{}}
	report, err := verify.Log(t.Context(), verify.Journals{Dir: root, All: true}, store, keys)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(report, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	wantFormer(t, "report.json", string(text)+"\n")
	exported := exportedLines(t, root, store)
	wantFormer(t, "export.ndjson", strings.Join(exported, ""))

	trail, err := NewTrail(Options{Dir: root, Signer: knownSigner{}, MACs: knownSigner{}}, store)
	if err != nil {
		t.Fatal(err)
	}
	if trail.Node() != jsonNode {
		t.Errorf("another journal is begun: %s", trail.Node())
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	if numbers, err := segments.List(filepath.Join(root, jsonNode)); err != nil || !slices.Equal(numbers, []int{3}) {
		t.Errorf("the segments %v are left, %v", numbers, err)
	}
	if report, err = verify.Log(t.Context(), verify.Journals{Dir: root, All: true}, store, keys); err != nil || len(report.Findings)+len(report.Notes) > 0 || report.Records != len(exported) {
		t.Errorf("after it was shipped: %+v, %v", report, err)
	}
	shipped := exportedLines(t, root, store)
	slices.Sort(exported)
	slices.Sort(shipped)
	if diff := cmp.Diff(exported, shipped); diff != "" {
		t.Errorf("after it was shipped: %s", diff)
	}
	var rows []storage.Page[query.Row]
	for _, organization := range []string{acme, other, ""} {
		page, err := query.Page(t.Context(), store, query.Filter{OrganizationID: organization, From: time.Unix(0, 0), To: time.Now().AddDate(1, 0, 0)}, storage.PageRequest{Number: 1})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, page)
	}
	if text, err = json.MarshalIndent(rows, "", "\t"); err != nil {
		t.Fatal(err)
	}
	wantFormer(t, "rows.json", string(text)+"\n")
}

// TestFormerTampering checks that each change to a journal of the former durward is found and told as before. Records of
// its segments share parts.
func TestFormerTampering(t *testing.T) {
	told := readTellings(t, filepath.Join("testdata", "former", "tampering.txt"))
	replace := func(line int, old, change string) func([]string) []string {
		return func(lines []string) []string {
			changed := strings.Replace(lines[line], old, change, 1)
			if changed == lines[line] {
				lines[line] = ""
			} else {
				lines[line] = changed
			}
			return lines
		}
	}
	for name, tamper := range map[string]func(lines []string) []string{
		"a part that others share":    replace(1, `"demo"`, `"dem0"`),
		"the own part of that record": replace(1, `"create_issue"`, `"delete_issue"`),
		"the own part of one of them": replace(2, `"create_issue"`, `"delete_issue"`),
		"a reference":                 replace(2, `,"0":1}`, `,"0":2}`),
		"a hash":                      func(lines []string) []string { return changeHash(lines, 2) },
		"a MAC away": func(lines []string) []string {
			lines[2] = lines[2][:strings.Index(lines[2], `","m":"`)] + lines[2][strings.Index(lines[2], `","e":`):]
			return lines
		},
		"the record with a part gone":  func(lines []string) []string { return slices.Delete(lines, 1, 2) },
		"a record gone":                func(lines []string) []string { return slices.Delete(lines, 2, 3) },
		"two records swapped":          func(lines []string) []string { lines[2], lines[3] = lines[3], lines[2]; return lines },
		"a record twice":               func(lines []string) []string { return slices.Insert(lines, 3, lines[2]) },
		"the format in the first line": replace(0, `"format":6`, `"format":5`),
		"a part in place of a reference": func(lines []string) []string {
			_, part, _ := strings.Cut(lines[1], `,"0":`)
			own, _, _ := strings.Cut(lines[2], `,"0":`)
			lines[2] = own + `,"0":` + part
			return lines
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, store := formerJournal(t)
			path := segments.Path(filepath.Join(root, jsonNode), 2)
			before := readFile(t, path)
			after := strings.Join(tamper(strings.SplitAfter(before, "\n")), "")
			if before == after {
				t.Fatal("nothing is changed")
			}
			if err := os.WriteFile(path, []byte(after), 0o600); err != nil {
				t.Fatal(err)
			}
			report, err := verify.Log(t.Context(), verify.Journals{Dir: root, All: true}, store, verify.Keys{Signatures: knownSigner{}, MACs: knownSigner{}})
			if err != nil || len(report.Findings) == 0 {
				t.Fatalf("%+v, %v", report, err)
			}
			told.compare(t, name, jsonNode, report.Findings)
			trail, err := NewTrail(Options{Dir: root, Signer: knownSigner{}, MACs: knownSigner{}}, store)
			if err != nil {
				t.Fatal(err)
			}
			if err := trail.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the segment is left in its place: %v", err)
			}
		})
	}
}

// changeHash changes the first character of a record's hash to another one of base64.
func changeHash(lines []string, line int) []string {
	at := strings.Index(lines[line], `,"h":"`) + len(`,"h":"`)
	first := "A"
	if lines[line][at] == 'A' {
		first = "B"
	}
	lines[line] = lines[line][:at] + first + lines[line][at+1:]
	return lines
}
