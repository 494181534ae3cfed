package metering

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// spool is a directory of batches that are not known to be in the store, one file each, so that they outlive the process.
//
// It has no locks. Whoever finds a batch there may send it and take it away afterwards, its maker too, at the same time:
// under its node and number it counts once. And a node's batches are sent in their order, so that one that is missing
// before others is in the store.
type spool struct{ dir string }

const spooled = ".json"

func (s spool) path(b *storage.UsageBatch) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s-%019d%s", b.Node, b.Number, spooled)) // sorted by name, they are in order
}

// keep makes a batch durable.
func (s spool) keep(b *storage.UsageBatch) error { return s.write(s.path(b), b) }

// refusedSuffix is what is behind the names of files of usage that no store takes. They stay for people.
const refusedSuffix = ".refused"

// setAside keeps what was refused of a batch, and returns the file's name; "" when there is no place for it.
func (s spool) setAside(b *storage.UsageBatch, refused *storage.UsageRefused) (file string, err error) {
	if s.dir == "" {
		return "", nil
	}
	file = strings.TrimSuffix(s.path(b), spooled) + refusedSuffix
	return file, s.write(file, refused)
}

// write makes a file durable, whole or not at all.
func (s spool) write(path string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, "*.tmp") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// drop takes a batch away that is in the store. One that stays is sent again, and ignored.
func (s spool) drop(b *storage.UsageBatch) error {
	if err := os.Remove(s.path(b)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// left reads the batches that others have left, in their order. Files that are none stay where they are, and are in the
// error. So are those that cannot be read, and with them all later ones of their node, for the next process: once those were
// sent, the store would take what comes before them for sent.
func (s spool) left() (batches []*storage.UsageBatch, err error) {
	entries, err := os.ReadDir(s.dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err // some of them may be missing
	}
	waits := "/" // the node whose batches must wait; none has that name
	for _, e := range entries {
		node, _, _ := strings.Cut(e.Name(), "-")
		if !strings.HasSuffix(e.Name(), spooled) || node == waits {
			continue
		}
		b, readErr := readBatch(filepath.Join(s.dir, e.Name()))
		if readErr == nil && s.path(b) != filepath.Join(s.dir, e.Name()) {
			readErr = errors.New("it is another batch")
		}
		switch _, unread := errors.AsType[*fs.PathError](readErr); {
		case errors.Is(readErr, fs.ErrNotExist): // its maker was faster
		case readErr != nil:
			err = errors.Join(err, fmt.Errorf("reading %s: %w", e.Name(), readErr))
			if unread {
				waits = node
			}
		default:
			batches = append(batches, b)
		}
	}
	return batches, err
}

func readBatch(path string) (*storage.UsageBatch, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := strictjson.Check(content, strictjson.Limits{MaxBytes: 64 << 20}); err != nil {
		return nil, err
	}
	b := new(storage.UsageBatch)
	if err := json.Unmarshal(content, b); err != nil {
		return nil, err
	}
	return b, nil
}
