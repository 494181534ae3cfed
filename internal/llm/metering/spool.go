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

// spool is a directory of batches that may not be in the store yet, one file for each, so that they outlive the
// process.
//
// It has no locks. Any process that finds a batch there may send it and remove it afterwards, even while its maker does
// the same: under its node and number the batch counts once. A node's batches are sent in order. So a batch that is
// missing before others is in the store.
type spool struct{ dir string }

const spooled = ".json"

func (s spool) path(b *storage.UsageBatch) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s-%019d%s", b.Node, b.Number, spooled)) // their names sort in the order of the batches
}

// keep makes a batch durable.
func (s spool) keep(b *storage.UsageBatch) error { return s.write(s.path(b), b) }

// refusedSuffix is the suffix of files with usage that no store accepts. They stay for people.
const refusedSuffix = ".refused"

// setAside saves the refused part of a batch, and returns the file's name; "" when there is no directory.
func (s spool) setAside(b *storage.UsageBatch, refused *storage.UsageRefused) (file string, err error) {
	if s.dir == "" {
		return "", nil
	}
	file = strings.TrimSuffix(s.path(b), spooled) + refusedSuffix
	return file, s.write(file, refused)
}

// write makes a file durable, completely or not at all.
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

// drop removes a batch that is in the store. A batch that stays is sent again, and ignored.
func (s spool) drop(b *storage.UsageBatch) error {
	if err := os.Remove(s.path(b)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// left reads the batches that others have left, in order. Files that are no batches stay in place, and the error names
// them. Files that cannot be read stay too, with all later ones of their node, for the next process. If the later ones
// were sent, the store would take the earlier ones for sent.
func (s spool) left() (batches []*storage.UsageBatch, err error) {
	entries, err := os.ReadDir(s.dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err // some files may be missing from the list
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
