package integration

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// wantForged checks that a verification finds the forged record: before the gateway runs again, beside it, and after it
// has signed further checkpoints and ended. It also checks that the gateway works, and has not gone on from the forged
// record.
func wantForged(t *testing.T, g *gateway, want string) {
	t.Helper()
	found := func(when string) {
		t.Helper()
		if output, code := g.verifyAudit(); code != exitFound || !strings.Contains(output, want) {
			t.Errorf("%s: status %d\n%s", when, code, output)
		}
	}
	found("before the start")
	g.restart()
	g.createServer("https://example.com/after", nil)
	found("beside the gateway")
	g.stop(t)
	found("after it")
}

// exitFound is the exit code of a verification that found something.
const exitFound = 2

// forgeRecord appends a record to a chain of the store's own records, and moves the chain's head, like an attacker who
// can write the database file and does not have the master key.
func forgeRecord(t *testing.T, g *gateway, mac func(last []byte) []byte) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(g.directory, "durward.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var organization, node, segment string
	var sequence int64
	var previous, last, text []byte
	if err := db.QueryRowContext(t.Context(), `SELECT organization_id, node, segment, sequence, hash, mac FROM audit_heads WHERE sequence > 0 ORDER BY sequence DESC LIMIT 1`).
		Scan(&organization, &node, &segment, &sequence, &previous, &last); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRowContext(t.Context(), `SELECT text FROM audit_records WHERE organization_id = $1 AND node = $2 AND sequence = $3`,
		organization, node, sequence).Scan(&text); err != nil {
		t.Fatal(err)
	}
	var entry map[string]any
	if err := json.Unmarshal(text, &entry); err != nil {
		t.Fatal(err)
	}
	at := time.Now().UTC()
	entry["id"], entry["event"], entry["at"] = "0190ffff-0000-7000-8000-00000000f0f0", "forged", at
	if text, err = json.Marshal(entry); err != nil {
		t.Fatal(err)
	}
	sequence++
	hash, forged := hashOfRecord(previous, organization, node, segment, text, sequence), mac(last)
	for _, step := range []struct {
		query string
		with  []any
	}{
		{`INSERT INTO audit_records (organization_id, node, segment, sequence, text, previous, hash, at, mac) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			[]any{organization, node, segment, sequence, text, previous, hash, at.UnixMicro(), forged}},
		{`UPDATE audit_heads SET sequence = $1, hash = $2, mac = $3 WHERE organization_id = $4 AND node = $5 AND segment = $6`,
			[]any{sequence, hash, forged, organization, node, segment}},
	} {
		if _, err := db.ExecContext(t.Context(), step.query, step.with...); err != nil {
			t.Fatal(err)
		}
	}
}

// hashOfRecord returns the hash of a record by the rules of docs/audit-format.md.
func hashOfRecord(previous []byte, organization, node, segment string, text []byte, sequence int64) []byte {
	h := sha256.New()
	h.Write(previous)
	for _, field := range [][]byte{[]byte(organization), []byte(node), []byte(segment), text} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		h.Write(field)
	}
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(sequence)))
	return h.Sum(nil)
}

// TestForgedRecord checks that a record that somebody with the database has appended behind the newest head, with the
// head moved, is found, and the gateway neither goes on from it nor signs it.
func TestForgedRecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mac  func(last []byte) []byte
		want string
	}{
		"without a MAC":         {func([]byte) []byte { return nil }, "have no MAC, and the node's records have"},
		"with another's MAC":    {bytes.Clone, "has a MAC that is not of this gateway"},
		"with a MAC of no size": {func([]byte) []byte { return []byte("x") }, "has a MAC that is not of this gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, settings{})
			g.createServer("https://example.com/before", nil)
			g.mustVerifyAudit()
			g.stop(t)
			forgeRecord(t, g, c.mac)
			wantForged(t, g, c.want)
			// Nobody sees which chains the gateway has begun instead but in what the store has: none goes on from the forged record.
			export, err := g.run(append([]string{"audit", "export"}, g.source()...)...)
			if err != nil {
				t.Fatal(err)
			}
			var forged struct{ Hash string }
			for line := range strings.Lines(export) {
				switch {
				case strings.Contains(line, `"event":"forged"`):
					if err := json.Unmarshal([]byte(line), &forged); err != nil {
						t.Fatal(err)
					}
				case forged.Hash != "" && strings.Contains(line, `"previous":"`+forged.Hash):
					t.Errorf("a record follows it: %s", line)
				}
			}
			if forged.Hash == "" {
				t.Error("it was not there at all")
			}
		})
	}
}

// killedJournal returns a gateway that was killed, and the path of the segment that grew.
func killedJournal(t *testing.T) (g *gateway, segment string) {
	t.Helper()
	g = startGateway(t, settings{})
	party := newThirdParty(t)
	s := g.createServer(party.url()+"/open", nil)
	token := g.token(alice)
	g.mcp(token, s, g.initialize(token, s), toolCallWith("echo", `{"n":1}`)).want(t, http.StatusOK)
	paths, err := filepath.Glob(filepath.Join(g.directory, "audit", "*", "*.ndjson"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v, %v", paths, err)
	}
	g.kill()
	return g, paths[0]
}

// journalRecord is a record of a segment, as docs/audit-format.md describes it.
type journalRecord struct {
	organization string
	sequence     uint64
	hash, mac    []byte
	text         string
}

var (
	journalEscapes = strings.NewReplacer("\x00", "\x1b\x40", "\n", "\x1b\x4a", "\x1b", "\x1b\x5b")
	journalPlain   = strings.NewReplacer("\x1b\x40", "\x00", "\x1b\x4a", "\n", "\x1b\x5b", "\x1b")
)

// readJournalRecord reads a line without its line end. It returns nil for lines that are no record.
func readJournalRecord(t *testing.T, line string) *journalRecord {
	t.Helper()
	if !strings.HasPrefix(line, "\x01") {
		return nil
	}
	var r journalRecord
	for rest := []byte(journalPlain.Replace(line)); len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		value := rest[1+n : 1+n+int(size)]
		switch rest[0] {
		case 1:
			r.organization = string(value)
		case 2:
			for _, c := range value {
				r.sequence = r.sequence<<8 | uint64(c)
			}
		case 3:
			r.hash = value
		case 4:
			r.mac = value
		case 5:
			r.text = string(value)
		default:
			t.Fatalf("docs/audit-format.md has no field %d", rest[0])
		}
		rest = rest[1+n+int(size):]
	}
	return &r
}

// line returns the record's line.
func (r *journalRecord) line() string {
	var line []byte
	for i, value := range []string{r.organization, strings.TrimLeft(string(binary.BigEndian.AppendUint64(nil, r.sequence)), "\x00"), string(r.hash), string(r.mac), r.text} {
		if i != 3 || len(r.mac) > 0 {
			line = append(binary.AppendUvarint(append(line, byte(i+1)), uint64(len(value))), value...)
		}
	}
	return journalEscapes.Replace(string(line)) + "\n"
}

// formerLine returns the record's line in a segment of a durward without MACs.
func (r *journalRecord) formerLine() string {
	return fmt.Sprintf(`{"o":"%s","n":%d,"h":"%s","e":%s}`+"\n", r.organization, r.sequence, base64.RawURLEncoding.EncodeToString(r.hash), r.text)
}

// forge returns the record that follows the last one of an organization's chain in a segment, without a MAC, and that
// last one.
func forge(t *testing.T, text string) (forged, last *journalRecord) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if r := readJournalRecord(t, line); r != nil && r.organization != "" {
			last = r
		}
	}
	if last == nil {
		t.Fatalf("no records in %q", tail(text, 1_000))
	}
	forged = &journalRecord{organization: last.organization, sequence: last.sequence + 1}
	forged.text = fmt.Sprintf(`{"i":"0190ffff-0000-7000-8000-00000000f0f0","t":%d,"v":"forged","d":"allow"}`, time.Now().UnixNano())
	hash := sha256.Sum256(append(binary.BigEndian.AppendUint64(append(bytes.Clone(last.hash), 2), forged.sequence), forged.text...))
	forged.hash = hash[:]
	return forged, last
}

// TestForgedJournal checks that a line that somebody with the disk has appended to a journal behind a kill is found,
// and the next start neither signs it nor brings it to the store.
func TestForgedJournal(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, text string) string{
		"without a MAC": func(t *testing.T, text string) string {
			forged, _ := forge(t, text)
			return text + forged.line()
		},
		"with another's MAC": func(t *testing.T, text string) string {
			forged, last := forge(t, text)
			forged.mac = last.mac
			return text + forged.line()
		},
		"as one of a former version": func(t *testing.T, text string) (former string) {
			forged, _ := forge(t, text)
			for line := range strings.Lines(strings.Replace(text, `{"format":7,`, `{"format":5,`, 1)) {
				if r := readJournalRecord(t, strings.TrimSuffix(line, "\n")); r != nil {
					line = r.formerLine()
				}
				former += line
			}
			return former + forged.formerLine()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, segment := killedJournal(t)
			content, err := os.ReadFile(segment)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(segment, []byte(change(t, strings.TrimRight(string(content), "\x00"))), 0o600); err != nil {
				t.Fatal(err)
			}
			wantForged(t, g, "MAC")
			export, err := g.run(append([]string{"audit", "export"}, g.source()...)...)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(export, `"event":"forged"`) {
				t.Error("it was brought to the store")
			}
		})
	}
}
