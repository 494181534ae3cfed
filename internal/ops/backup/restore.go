package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Errors of a restore.
var (
	// ErrIncomplete says that an archive was cut off, or does not hold what its manifest names.
	ErrIncomplete = errors.New("the archive is damaged or incomplete")
	// ErrOccupied says that a gateway has run in the directory.
	ErrOccupied = errors.New("the directory is in use")
)

const (
	// unpackedName is the directory in which an archive is unpacked, beside the places of its files.
	unpackedName = ".durward-restore"
	// maxManifest bounds the manifest, in bytes: a hundred thousand files.
	maxManifest = 32 << 20
)

// Target is where a gateway is restored.
type Target struct {
	// Directory gets the folders.
	Directory string
	// Store is the path of the SQLite store in Directory; "" when the gateway has none.
	Store string
	// Check looks at the unpacked store before anything is moved to its place. It may be nil.
	Check func(ctx context.Context, store string) error
}

// Read takes an archive's files out to their places. Nothing is there before every file was unpacked and compared with the
// manifest. The store comes last. When Read was interrupted, it can be started again: it begins anew.
// It returns ErrOccupied where files of a gateway are already, and ErrIncomplete.
func Read(ctx context.Context, archive string, to *Target) (m Manifest, err error) {
	if err := to.makeDirectory(); err != nil {
		return m, err
	}
	unpacked := filepath.Join(to.Directory, unpackedName)
	if err := to.clear(unpacked); err != nil {
		return m, err
	}
	root, err := makeRoot(unpacked)
	if err != nil {
		return m, err
	}
	m, err = unpack(ctx, archive, root)
	if err == nil {
		err = to.fits(&m)
	}
	if store := filepath.Join(unpacked, StoreName); err == nil && to.Store != "" && to.Check != nil {
		err = to.Check(ctx, store)
	}
	if err == nil {
		err = giveTo(to.Directory, root)
	}
	if err = errors.Join(err, root.Close()); err != nil {
		return m, errors.Join(err, os.RemoveAll(unpacked))
	}
	return m, to.place(unpacked)
}

// makeDirectory makes the directory where it is not there. Directories above that of a store are not made, as when a gateway
// starts: a mistyped path must not create a tree. Nobody types the directory of a gateway without one, which is Caddy's.
func (t *Target) makeDirectory() error {
	if _, err := os.Stat(t.Directory); err == nil {
		return nil
	}
	there := filepath.Dir(t.Directory)
	for t.Store == "" && there != filepath.Dir(there) {
		if _, err := os.Stat(there); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		there = filepath.Dir(there)
	}
	made, err := filepath.Rel(there, t.Directory)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(there)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range ancestors(made) {
		if err := root.Mkdir(name, 0o700); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := giveDirectory(root, name); err != nil {
			return err
		}
	}
	return nil
}

// ancestors returns a relative path and the paths above it, the shortest first.
func ancestors(path string) []string {
	if parent := filepath.Dir(path); parent != "." {
		return append(ancestors(parent), path)
	}
	return []string{path}
}

// makeRoot makes a directory and opens it. The user of the gateway may own the directory around it, and put a link in its
// place: root must write no file where that leads, and give none away.
func makeRoot(name string) (*os.Root, error) {
	if err := os.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil {
		var named fs.FileInfo
		if named, err = os.Lstat(name); err == nil && !os.SameFile(opened, named) {
			err = fmt.Errorf("%s was replaced meanwhile", name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// clear makes sure that nothing is in the way, and removes what an interrupted restore has left.
func (t *Target) clear(unpacked string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if t.Store == "" {
			break
		}
		if err := absent(t.Store + suffix); err != nil {
			return fmt.Errorf("%w: %w", ErrOccupied, err)
		}
	}
	// The mark is made before the first folder is moved: folders beside it are the former restore's.
	_, err := os.Lstat(filepath.Join(unpacked, placingName))
	ours := err == nil
	for _, folder := range Folders() {
		path := filepath.Join(t.Directory, folder)
		switch entries, err := os.ReadDir(path); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case ours:
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		case len(entries) > 0:
			return fmt.Errorf("%w: %s is not empty", ErrOccupied, path)
		}
	}
	return os.RemoveAll(unpacked)
}

// placingName is the mark that folders are being moved to their places.
const placingName = "placing"

func (t *Target) fits(m *Manifest) error {
	holds := slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == StoreName })
	switch {
	case t.Store != "" && !holds:
		return fmt.Errorf("the archive holds no store (it is of a gateway with %s), and the configuration has a SQLite store", m.Store)
	case t.Store == "" && holds:
		return errors.New("the archive holds a SQLite store, and the configuration has another one: restore it with a SQLite store, then see `durward migrate-store`")
	}
	return nil
}

// place moves what was unpacked to its places, and makes it durable: folders first. A store without them would be taken for
// one whose journal was lost.
func (t *Target) place(unpacked string) error {
	mark, err := os.OpenFile(filepath.Join(unpacked, placingName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(mark.Sync(), mark.Close(), syncDirectory(unpacked)); err != nil {
		return err
	}
	for _, folder := range Folders() {
		from, to := filepath.Join(unpacked, folder), filepath.Join(t.Directory, folder)
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty directory
			return err
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	if err := syncDirectory(t.Directory); err != nil {
		return err
	}
	if t.Store != "" {
		if err := os.Rename(filepath.Join(unpacked, StoreName), t.Store); err != nil {
			return err
		}
	}
	return errors.Join(syncDirectory(t.Directory), os.RemoveAll(unpacked))
}

// unpack writes the entries of an archive below a directory, and compares them with its manifest.
func unpack(ctx context.Context, archive string, to *os.Root) (m Manifest, err error) {
	f, err := os.Open(archive)
	if err != nil {
		return m, err
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	entries := tar.NewReader(packed)
	var found []File
	for {
		if err := ctx.Err(); err != nil {
			return m, err
		}
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return m, fmt.Errorf("%w: it has no manifest", ErrIncomplete)
		}
		if err != nil {
			return m, fmt.Errorf("%w: %w", ErrIncomplete, err)
		}
		if header.Name == manifestName {
			if m, err = readManifest(entries, found); err != nil {
				return m, err
			}
			// Behind it are the end of the tar file and the checksum of the whole.
			if _, err := io.Copy(io.Discard, packed); err != nil { //nolint:gosec // as below
				return m, fmt.Errorf("%w: %w", ErrIncomplete, err)
			}
			return m, nil
		}
		file, err := unpackFile(entries, header, to)
		if err != nil {
			return m, err
		}
		found = append(found, file)
	}
}

func readManifest(from io.Reader, found []File) (m Manifest, err error) {
	text, err := io.ReadAll(io.LimitReader(from, maxManifest))
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: reading its manifest: %w", ErrIncomplete, err)
	}
	if m.Format != archiveFormat {
		return m, fmt.Errorf("the archive has format %d, this durward reads format %d: use the durward that wrote it, %s", m.Format, archiveFormat, m.Version)
	}
	if !slices.Equal(m.Files, found) {
		return m, fmt.Errorf("%w: its files differ from its manifest", ErrIncomplete)
	}
	return m, nil
}

// unpackFile writes an entry. Its name is one that Write could have given: an archive may come from anywhere, and a name can
// lead out of the directory.
func unpackFile(entry io.Reader, header *tar.Header, below *os.Root) (file File, err error) {
	if header.Typeflag != tar.TypeReg || !allowed(header.Name) {
		return file, fmt.Errorf("%w: an entry is named %q", ErrIncomplete, header.Name)
	}
	to := filepath.FromSlash(header.Name)
	if err := below.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return file, err
	}
	out, err := below.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), entry)
	if err != nil {
		return file, fmt.Errorf("unpacking %s: %w", header.Name, err)
	}
	if err := errors.Join(out.Sync(), syncBelow(below, filepath.Dir(to))); err != nil {
		return file, err
	}
	return File{Name: header.Name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

func syncBelow(root *os.Root, name string) error {
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func allowed(name string) bool {
	if name == StoreName {
		return true
	}
	folder, _, _ := strings.Cut(name, "/")
	return fs.ValidPath(name) && slices.Contains(Folders(), folder) && folder != name && filepath.IsLocal(filepath.FromSlash(name))
}
