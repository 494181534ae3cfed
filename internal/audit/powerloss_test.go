package audit

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// powered is a file on a disk that loses power: any page that was not synced may be lost.
type powered struct {
	file
	path   string
	mu     *sync.Mutex
	before func(path string, text []byte, safe int) // is called before each write and sync, and after each write
	text   []byte
	safe   int // bytes of text
}

func (f *powered) Write(p []byte) (int, error) {
	f.mu.Lock()
	f.before(f.path, f.text, f.safe)
	f.text = append(f.text, p...)
	f.before(f.path, f.text, f.safe)
	f.mu.Unlock()
	n, err := f.file.Write(p)
	f.mu.Lock()
	f.before(f.path, f.text, f.safe)
	f.mu.Unlock()
	return n, err
}

func (f *powered) Sync() error {
	f.mu.Lock()
	written := len(f.text)
	f.before(f.path, f.text, f.safe)
	f.mu.Unlock()
	err := f.file.Sync()
	if err == nil {
		f.mu.Lock()
		f.safe = max(f.safe, written)
		f.mu.Unlock()
	}
	return err
}

// TestPowerLoss checks Z-D03: after a power cut the journal opens, and Verify finds no sign of an attack. With `sync
// always` every acknowledged record exists. Without it the existing records are intact, and the test checks no more than
// that.
func TestPowerLoss(t *testing.T) {
	for name, always := range map[string]bool{"sync always": true, "sync": false} {
		t.Run(name, func(t *testing.T) { losePower(t, always) })
	}
}

func losePower(t *testing.T, always bool) {
	const cuts, every = 20, 7
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same cuts in every run
	type cut struct {
		dir   string
		acked int // the number of records that must exist
		asked int
	}
	var left []cut
	var mu sync.Mutex
	acked, asked, changes := 0, 0, 0
	dir := t.TempDir()
	o := testOptions(t, dir)
	page := os.Getpagesize()
	o.create = func(path string) (file, error) {
		made, err := createFile(path)
		return &powered{file: made, path: path, mu: &mu, before: func(path string, text []byte, safe int) {
			if changes++; changes%every != 0 || len(left) == cuts {
				return
			}
			// Some pages were forced to the disk only in part. The part on the disk stays.
			content := make([]byte, len(text)+page)
			copy(content, text[:safe])
			for from := safe; from < len(text); {
				end := min((from/page+1)*page, len(text))
				if len(left)%3 > 0 && random.IntN(2) == 0 {
					copy(content[from:], text[from:end])
				}
				from = end
			}
			c := cut{t.TempDir(), acked, asked}
			relative, err := filepath.Rel(dir, path)
			if err == nil {
				err = os.CopyFS(c.dir, os.DirFS(dir))
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(c.dir, relative), content, 0o600)
			}
			if err != nil {
				t.Error(err)
			}
			left = append(left, c)
		}}, err
	}
	j := openJournal(t, o)
	j.SyncAlways(always)
	for {
		mu.Lock()
		asked++
		done := len(left) == cuts
		mu.Unlock()
		if done {
			break
		}
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		if always {
			acked = asked
		}
		mu.Unlock()
	}
	lost := 0
	for i, c := range left {
		again := openJournal(t, testOptions(t, c.dir))
		report := wantClean(t, c.dir, new(memory))
		if report.Records < c.acked || report.Records > c.asked {
			t.Errorf("cut %d: %d records are there, %d were acknowledged and %d asked for", i, report.Records, c.acked, c.asked)
		}
		if report.Records < c.asked {
			lost++
		}
		if err := again.Append(acme, intent("after")); err != nil {
			t.Errorf("cut %d: %v", i, err)
		}
		wantClean(t, c.dir, new(memory))
	}
	t.Logf("%d records, %d cuts, %d of which lost something", asked-1, len(left), lost)
	if lost == 0 {
		t.Error("no cut lost anything: the model is none")
	}
}
