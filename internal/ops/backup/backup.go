// Package backup writes what a gateway keeps into one archive, and takes it out again.
//
// An archive is a tar file, compressed by gzip. Its last entry is the manifest, which names every other entry with its size
// and its SHA-256. An archive without a manifest is one that was not finished.
//
// The order makes the archive whole although the gateway goes on. Records of calls and usage go from files into the store, and
// leave their files only when the store has them. So the files are opened first, then the store is copied, then the files are
// read: a record that is missing from them was in the store by then. A record that is in both counts once when it is shipped
// again. Journals are cut where they speak of records that the copy of the store has not (cutter).
package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// Names of entries.
const (
	// StoreName is the entry of the SQLite store.
	StoreName    = "durward.db"
	manifestName = "manifest.json"
)

// Folders are the directories beside the store whose files belong to it: the journals of the audit log, and the usage that is
// not in the store yet.
func Folders() []string { return []string{journalsName, "usage"} }

// journalsName is the folder of the audit log's journals.
const journalsName = "audit"

// lockName is the file of a journal that a process locks. It is empty.
const lockName = "lock"

// archiveFormat is the version of archives that this package writes and reads.
const archiveFormat = 1

// Manifest describes an archive.
type Manifest struct {
	Format int `json:"format"`
	// Version is the version of the durward that wrote the archive.
	Version string    `json:"version"`
	MadeAt  time.Time `json:"made_at"`
	// Store is the kind of the gateway's store, "sqlite" or "postgres". An archive of the latter holds files only.
	Store string `json:"store"`
	Files []File `json:"files"`
}

// File is an entry of an archive.
type File struct {
	Name   string `json:"name"` // with slashes
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Source is a gateway.
type Source struct {
	Manifest  // Files is filled in
	Directory string
	// Snapshot writes a copy of the store into a new file. It is nil when the archive holds files only.
	Snapshot func(ctx context.Context, to string) error
	// Ends returns the ends of the audit log's chains that the copy of the store has.
	Ends func(ctx context.Context, copied string) ([]storage.AuditChain, error)
}

// Write writes an archive to the file at to, which must not exist. A file of that name appears when the archive is complete
// and durable, and never before. While Write runs, what it has written is in files whose names begin with the same.
func Write(ctx context.Context, from *Source, to string) (m Manifest, err error) {
	if err := absent(to); err != nil {
		return m, err
	}
	part := to + ".part"
	if info, err := os.Lstat(part); err == nil && !info.Mode().IsRegular() {
		return m, notFile(part)
	}
	unlock, err := segments.Lock(part)
	if errors.Is(err, segments.ErrLocked) {
		return m, fmt.Errorf("%s is in use: another backup is writing it", part)
	}
	if err != nil {
		return m, err
	}
	defer unlock()
	out, err := openPart(part)
	if err != nil {
		return m, err
	}
	defer func() {
		if left := errors.Join(out.Close(), os.Remove(part)); err != nil {
			err = errors.Join(err, left)
		}
	}()
	packed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return m, err
	}
	w := &writer{tar: tar.NewWriter(packed), manifest: from.Manifest}
	w.manifest.Format = archiveFormat
	if err := w.all(ctx, from, part); err != nil {
		return m, err
	}
	if err := errors.Join(w.tar.Close(), packed.Close(), out.Sync()); err != nil {
		return m, err
	}
	// A link fails where the name exists by now; a rename would replace it.
	if err := os.Link(part, to); err != nil {
		return m, err
	}
	return w.manifest, syncDirectory(filepath.Dir(to))
}

// openPart opens the unfinished archive, which a backup that was killed may have left. Somebody else who can write to the
// directory may have put a link there: what it leads to must not be emptied.
func openPart(name string) (*os.File, error) {
	out, err := os.OpenFile(name, os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	opened, err := out.Stat()
	if err == nil {
		var named fs.FileInfo
		if named, err = os.Lstat(name); err == nil && (!named.Mode().IsRegular() || !os.SameFile(opened, named)) {
			err = notFile(name)
		}
	}
	if err == nil {
		err = errors.Join(out.Chmod(0o600), out.Truncate(0))
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

func notFile(name string) error { return fmt.Errorf("%s is not a file: remove it", name) }

func absent(name string) error {
	_, err := os.Lstat(name)
	switch {
	case err == nil:
		return fmt.Errorf("%s exists already: name another file", name)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// writer adds entries to an archive.
type writer struct {
	tar      *tar.Writer
	manifest Manifest
	journals *cutter // nil when the store is not in the archive
}

// all writes every entry. The copy of the store lies beside the archive meanwhile.
func (w *writer) all(ctx context.Context, from *Source, part string) error {
	var folders []*heldFolder
	defer func() {
		for _, h := range folders {
			h.close()
		}
	}()
	for _, folder := range Folders() {
		h, err := hold(from.Directory, folder)
		if err != nil {
			return fmt.Errorf("opening %s: %w", filepath.Join(from.Directory, folder), err)
		}
		folders = append(folders, h)
	}
	copied := part + ".db"
	if from.Snapshot != nil {
		if err := os.Remove(copied); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		defer os.Remove(copied)
		if err := from.Snapshot(ctx, copied); err != nil {
			return err
		}
		ends, err := from.Ends(ctx, copied)
		if err != nil {
			return fmt.Errorf("reading the copy of the store: %w", err)
		}
		w.journals = newCutter(ends)
	}
	for _, h := range folders {
		if err := w.folder(ctx, h); err != nil {
			return fmt.Errorf("copying %s: %w", filepath.Join(from.Directory, h.name), err)
		}
	}
	if from.Snapshot != nil {
		if err := w.store(copied); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(w.manifest, "", "  ")
	if err != nil {
		return err
	}
	return w.entry(manifestName, text)
}

func (w *writer) store(copied string) error {
	f, err := os.Open(copied)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return w.add(StoreName, info.Size(), f)
}

// heldFolder is a folder whose files were opened before the store was copied. They are read after it: a journal that ends
// before the store's records of it would look as if somebody had added those. A file that is removed meanwhile can be read.
type heldFolder struct {
	name  string
	root  *os.Root // nil when there is no such folder
	files map[string]*os.File
}

// hold opens the files of a folder. The folder may be a link, such as to another disk. Nothing outside of it is opened.
func hold(directory, folder string) (*heldFolder, error) {
	h := &heldFolder{name: folder, files: make(map[string]*os.File)}
	root, err := os.OpenRoot(filepath.Join(directory, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	h.root = root
	if err := h.look(); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *heldFolder) close() {
	for _, f := range h.files {
		_ = f.Close() // it was read only
	}
	if h.root != nil {
		_ = h.root.Close()
	}
}

// look opens what is new. The gateway makes, renames and removes files meanwhile: a file that is gone is in the store, or has
// another name now. So the folder is read again until it shows nothing new.
func (h *heldFolder) look() error {
	have := make(map[string]bool)
	for name := range h.files {
		have[name] = true
	}
	for {
		fresh, err := unseen(h.root.FS(), have)
		if err != nil || len(fresh) == 0 {
			return err
		}
		for _, name := range fresh {
			have[name] = true
			f, err := h.root.Open(filepath.FromSlash(name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			h.files[name] = f
		}
	}
}

// renamed reports whether a file has another name by now, under which it was opened again.
func (h *heldFolder) renamed(name string) (bool, error) {
	if _, err := h.root.Stat(filepath.FromSlash(name)); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	was, err := h.files[name].Stat()
	if err != nil {
		return false, err
	}
	for other, f := range h.files {
		if is, err := f.Stat(); err == nil && other != name && os.SameFile(was, is) {
			return true, nil
		}
	}
	return false, nil
}

// folder adds the files of a folder, with those that came while the store was copied.
func (w *writer) folder(ctx context.Context, h *heldFolder) error {
	if h.root == nil {
		return nil
	}
	if err := h.look(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(h.files)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		again, err := h.renamed(name)
		if err != nil {
			return err
		}
		if again {
			continue
		}
		// A segment has 16 MiB, and at most the records of a moment more. It grows while it is read.
		text, err := io.ReadAll(h.files[name])
		if err != nil {
			return err
		}
		if h.name == journalsName && w.journals != nil {
			var ok bool
			if text, ok = w.journals.segment(name, text); !ok {
				continue
			}
		}
		if err := w.entry(path.Join(h.name, name), text); err != nil {
			return err
		}
	}
	return nil
}

// unseen lists the files of a directory that are not in have. Files that are not finished have no place in an archive. A
// link fails: an archive without the files behind it would pass for a whole one.
func unseen(directory fs.FS, have map[string]bool) (names []string, err error) {
	err = fs.WalkDir(directory, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a symbolic link, which a backup does not follow", name)
		case d.Type().IsRegular() && d.Name() != lockName && path.Ext(name) != ".tmp" && !have[name]:
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

func (w *writer) entry(name string, text []byte) error {
	if name == manifestName {
		return w.copy(name, int64(len(text)), bytes.NewReader(text), io.Discard)
	}
	return w.add(name, int64(len(text)), bytes.NewReader(text))
}

// add writes an entry, and its line of the manifest.
func (w *writer) add(name string, size int64, from io.Reader) error {
	sum := sha256.New()
	if err := w.copy(name, size, from, sum); err != nil {
		return err
	}
	w.manifest.Files = append(w.manifest.Files, File{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

func (w *writer) copy(name string, size int64, from io.Reader, sum io.Writer) error {
	header := tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: w.manifest.MadeAt, Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(&header); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if _, err := io.CopyN(io.MultiWriter(w.tar, sum), from, size); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// syncDirectory makes the names in a directory durable.
func syncDirectory(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
