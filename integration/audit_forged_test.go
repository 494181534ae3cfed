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
	"regexp"
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

var journalLine = regexp.MustCompile(`(?m)^\{"o":"(0[^"]*)","n":(\d+),"h":"([^"]*)"(,"m":"[^"]*")?,"e":.*\n`)

// forgeLine makes the line that follows the last one of an organization's chain in a segment. mac stands in the place
// of its MAC.
func forgeLine(t *testing.T, text, mac string) (line string) {
	t.Helper()
	all := journalLine.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		t.Fatalf("no records in %s", tail(text, 1_000))
	}
	last := all[len(all)-1]
	previous, err := base64.RawURLEncoding.DecodeString(last[3])
	if err != nil {
		t.Fatal(err)
	}
	var sequence uint64
	if _, err := fmt.Sscan(last[2], &sequence); err != nil {
		t.Fatal(err)
	}
	sequence++
	entry := fmt.Sprintf(`{"i":"0190ffff-0000-7000-8000-00000000f0f0","t":%d,"v":"forged","d":"allow"}`, time.Now().UnixNano())
	hash := sha256.Sum256(append(binary.BigEndian.AppendUint64(append(previous, 2), sequence), entry...))
	if mac == "copied" {
		mac = last[4]
	}
	return fmt.Sprintf(`{"o":"%s","n":%d,"h":"%s"%s,"e":%s}`+"\n", last[1], sequence, base64.RawURLEncoding.EncodeToString(hash[:]), mac, entry)
}

// TestForgedJournal checks that a line that somebody with the disk has appended to a journal behind a kill is found,
// and the next start neither signs it nor brings it to the store.
func TestForgedJournal(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(t *testing.T, text string) string{
		"without a MAC":      func(t *testing.T, text string) string { return text + forgeLine(t, text, "") },
		"with another's MAC": func(t *testing.T, text string) string { return text + forgeLine(t, text, "copied") },
		"as one of a former version": func(t *testing.T, text string) string {
			text += forgeLine(t, text, "")
			text = strings.Replace(text, `{"format":6,`, `{"format":5,`, 1)
			return regexp.MustCompile(`,"m":"[^"]*","e":`).ReplaceAllString(text, `,"e":`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, segment := killedJournal(t)
			content, err := os.ReadFile(segment)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(segment, []byte(forge(t, strings.TrimRight(string(content), "\x00"))), 0o600); err != nil {
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
