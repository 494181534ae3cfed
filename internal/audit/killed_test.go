package audit

import (
	"bufio"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/audit/verify"
	"github.com/durward-gateway/durward/storage"
)

// killedVariable is the environment variable with the directory of journals, for a process that appends until it is
// killed.
const killedVariable = "DURWARD_TEST_AUDIT_KILLED"

// knownSigner signs, and makes MACs, with a key that each process of this test has.
type knownSigner struct{}

var knownKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

func (knownSigner) Sign(message []byte) []byte { return ed25519.Sign(knownKey, message) }

func (knownSigner) Verify(message, signature []byte) bool {
	return ed25519.Verify(knownKey.Public().(ed25519.PublicKey), message, signature)
}

func (knownSigner) AppendMAC(to, message []byte) []byte {
	h := hmac.New(sha256.New, knownKey)
	h.Write(message)
	return append(to, h.Sum(nil)[:len(storage.AuditMAC{})]...)
}

func (k knownSigner) CheckMAC(message, mac []byte) bool {
	return hmac.Equal(k.AppendMAC(nil, message), mac)
}

func killedOptions(dir string) Options {
	return Options{Dir: dir, Signer: knownSigner{}, MACs: knownSigner{}, SegmentSize: 400 << 10, CheckpointEvery: 20 * time.Millisecond}
}

// appendUntilKilled prints the id of each record after it was acknowledged.
func appendUntilKilled(dir string) {
	err := func() error {
		j, err := Open(killedOptions(dir))
		if err != nil {
			return err
		}
		for i := 0; ; i++ {
			e := intent("create_issue")
			e.UserID = fmt.Sprint(i % 5)
			switch {
			case i%97 == 0:
				e.Session = strings.Repeat("x", 20_000)
			case i%307 == 306:
				e.Session = strings.Repeat("y", 700_000)
			}
			if err := j.Append([]string{acme, other}[i%2], e); err != nil {
				return err
			}
			if _, err := fmt.Println(e.ID); err != nil {
				return err
			}
			j.Outcome(acme, plainOutcome(e))
		}
	}()
	fmt.Println("error", err)
	os.Exit(1)
}

// snapshot returns the files below a directory with their sizes, times and contents.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		text, err2 := os.ReadFile(path)
		files[path] = fmt.Sprint(info.Size(), info.ModTime(), info.Mode(), sha256.Sum256(text))
		return errors.Join(err, err2)
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// exportedIDs returns the ids of all records in an export.
func exportedIDs(t *testing.T, root string) map[string]bool {
	t.Helper()
	ids := make(map[string]bool)
	if err := query.Everything(t.Context(), root, new(memory), "*", time.Unix(0, 0), time.Now().AddDate(1, 0, 0), func(r *storage.AuditRecord) error {
		e, err := format.EntryOf(r)
		ids[e.ID] = true
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestKilled checks Z-D02: whenever a process is killed, all its acknowledged records exist. A reader of the directory,
// which changes nothing in it, finds them, and so does the next start.
func TestKilled(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // the same in every run
	var root string
	var acknowledged []string
	all := 0
	const rounds = 12
	for round := range rounds {
		if round%6 == 0 {
			root, acknowledged = t.TempDir(), nil
		}
		records := untilKilled(t, root, 1+random.IntN(400))
		acknowledged, all = append(acknowledged, records...), all+len(records)
		before := snapshot(t, root)
		verifyKilled(t, root, acknowledged)
		if changed := cmp.Diff(before, snapshot(t, root)); changed != "" {
			t.Errorf("reading changed something: %s", changed)
		}
		j := openJournal(t, killedOptions(root))
		verifyKilled(t, root, acknowledged)
		kill(t, j) // the next process continues in another segment
		if t.Failed() {
			return
		}
	}
	t.Logf("%d records were acknowledged", all)
}

// untilKilled returns the records that a process acknowledged before it was killed.
func untilKilled(t *testing.T, root string, records int) (ids []string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), killedVariable+"="+root)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || strings.HasPrefix(line, "error") {
			t.Fatal(line, err)
		}
		if ids = append(ids, strings.TrimSpace(line)); len(ids) == records {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // it was killed
	if len(ids) < records {
		t.Fatalf("%d records, and it ended", len(ids))
	}
	return ids
}

func verifyKilled(t *testing.T, root string, acknowledged []string) {
	t.Helper()
	report, err := verify.Log(t.Context(), verify.Journals{Dir: root, All: true}, new(memory), verify.Keys{Signatures: knownSigner{}, MACs: knownSigner{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("found in what nobody touched: %s", f)
	}
	ids, missing := exportedIDs(t, root), 0
	for _, id := range acknowledged {
		if !ids[id] {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d records that were acknowledged are gone", missing, len(acknowledged))
	}
}
