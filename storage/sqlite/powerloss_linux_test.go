package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/durward-gateway/durward/storage"
)

// disk is a model of a disk that loses power: of the files in its folder it knows the written data, and which of it
// was forced to the disk. Files are there as soon as they are made, and gone as soon as they are removed.
type disk struct {
	folder string

	mu    sync.Mutex
	files map[string]*diskFile
	// before is called with the lock held before each change and each sync.
	before func()
}

// diskFile is a file: its safe contents, and the writes since, any of which may be lost.
type diskFile struct {
	safe    []byte
	pending []diskChange
}

// diskChange writes bytes, or cuts the file when there are none.
type diskChange struct {
	at    int64
	bytes []byte
}

const diskSector = 512

func (c diskChange) apply(content []byte) []byte {
	if c.bytes == nil {
		return append(content[:min(int(c.at), len(content))], make([]byte, max(0, int(c.at)-len(content)))...)
	}
	if end := int(c.at) + len(c.bytes); end > len(content) {
		content = append(content, make([]byte, end-len(content))...)
	}
	copy(content[c.at:], c.bytes)
	return content
}

func (d *disk) change(path string, c diskChange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before()
	f := d.files[path]
	f.pending = append(f.pending, c)
}

func (d *disk) sync(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before()
	f := d.files[path]
	for _, c := range f.pending {
		f.safe = c.apply(f.safe)
	}
	f.pending = nil
}

// cut writes the remains of the files after a power cut into another folder. keep says of each sector that was not
// forced to the disk whether it was stored.
func (d *disk) cut(folder string, keep func() bool) error {
	for path, f := range d.files {
		content := append([]byte(nil), f.safe...)
		for _, c := range f.pending {
			if c.bytes == nil {
				if keep() {
					content = c.apply(content)
				}
				continue
			}
			for from := 0; from < len(c.bytes); from += diskSector {
				if keep() {
					content = diskChange{c.at + int64(from), c.bytes[from:min(from+diskSector, len(c.bytes))]}.apply(content)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(path)), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// shim stands between SQLite and the operating system (https://sqlite.org/vfs.html): it is the usual VFS, and tells
// disks about the calls.
var shim struct {
	once     sync.Once
	original sqlite3.Tsqlite3_vfs

	mu      sync.Mutex
	disks   map[string]*disk                         // by folder
	open    map[uintptr]openFile                     // by SQLite's handle
	methods map[uintptr]uintptr                      // called instead of the original ones
	called  map[uintptr]*sqlite3.Tsqlite3_io_methods // the original ones of those
}

type openFile struct {
	disk *disk
	path string
}

// at returns a pointer to what C has at an address.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// function returns a C function pointer as a Go function.
func function[T any](p uintptr) T { return *(*T)(unsafe.Pointer(&struct{ uintptr }{p})) }

// pointer returns the C function pointer of a function that is no closure.
func pointer[T any](f T) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

type (
	openFunc   = func(tls *libc.TLS, vfs, path, file uintptr, flags int32, out uintptr) int32
	deleteFunc = func(tls *libc.TLS, vfs, path uintptr, syncFolder int32) int32
	writeFunc  = func(tls *libc.TLS, file, from uintptr, n int32, offset sqlite3.Tsqlite3_int64) int32
	cutFunc    = func(tls *libc.TLS, file uintptr, size sqlite3.Tsqlite3_int64) int32
	syncFunc   = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// newDisk watches what SQLite does in a folder.
func newDisk(t *testing.T, folder string) *disk {
	t.Helper()
	shim.once.Do(func() {
		tls := libc.NewTLS()
		defer tls.Close()
		shim.disks, shim.open = make(map[string]*disk), make(map[uintptr]openFile)
		shim.methods, shim.called = make(map[uintptr]uintptr), make(map[uintptr]*sqlite3.Tsqlite3_io_methods)
		shim.original = *at[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
		name, err := libc.CString("powerloss")
		p := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(shim.original)))
		if err != nil || p == 0 {
			t.Fatal("no memory", err)
		}
		ours := at[sqlite3.Tsqlite3_vfs](p)
		*ours = shim.original
		ours.FpNext, ours.FzName, ours.FxOpen = 0, name, pointer[openFunc](shimOpen)
		ours.FxDelete = pointer[deleteFunc](shimDelete)
		if rc := sqlite3.Xsqlite3_vfs_register(tls, p, 1); rc != sqlite3.SQLITE_OK {
			t.Fatal("registering:", rc)
		}
	})
	d := &disk{folder: folder, files: make(map[string]*diskFile), before: func() {}}
	shim.mu.Lock()
	defer shim.mu.Unlock()
	shim.disks[folder] = d
	return d
}

func shimOpen(tls *libc.TLS, vfs, path, file uintptr, flags int32, out uintptr) int32 {
	rc := function[openFunc](shim.original.FxOpen)(tls, vfs, path, file, flags, out)
	name := ""
	if path != 0 {
		name = libc.GoString(path)
	}
	shim.mu.Lock()
	defer shim.mu.Unlock()
	d := shim.disks[filepath.Dir(name)]
	if rc != sqlite3.SQLITE_OK || d == nil {
		return rc
	}
	d.mu.Lock()
	if d.files[name] == nil {
		d.files[name] = new(diskFile)
	}
	d.mu.Unlock()
	shim.open[file] = openFile{d, name}
	of := &at[sqlite3.Tsqlite3_file](file).FpMethods
	if shim.methods[*of] == 0 {
		original := at[sqlite3.Tsqlite3_io_methods](*of)
		p := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(*original)))
		if p == 0 {
			return sqlite3.SQLITE_NOMEM
		}
		ours := at[sqlite3.Tsqlite3_io_methods](p)
		*ours = *original
		ours.FxWrite, ours.FxTruncate, ours.FxSync = pointer[writeFunc](shimWrite), pointer[cutFunc](shimTruncate), pointer[syncFunc](shimSync)
		shim.methods[*of], shim.called[p] = p, original
	}
	*of = shim.methods[*of]
	return rc
}

// shimDelete counts removed files as gone: SQLite removes its journal when it begins to write ahead, and syncs the
// folder.
func shimDelete(tls *libc.TLS, vfs, path uintptr, syncFolder int32) int32 {
	rc := function[deleteFunc](shim.original.FxDelete)(tls, vfs, path, syncFolder)
	name := libc.GoString(path)
	shim.mu.Lock()
	defer shim.mu.Unlock()
	if d := shim.disks[filepath.Dir(name)]; rc == sqlite3.SQLITE_OK && d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.files, name)
	}
	return rc
}

// opened returns the file of a handle.
func opened(file uintptr) (openFile, *sqlite3.Tsqlite3_io_methods) {
	shim.mu.Lock()
	defer shim.mu.Unlock()
	return shim.open[file], shim.called[at[sqlite3.Tsqlite3_file](file).FpMethods]
}

func shimWrite(tls *libc.TLS, file, from uintptr, n int32, offset sqlite3.Tsqlite3_int64) int32 {
	f, original := opened(file)
	f.disk.change(f.path, diskChange{offset, append([]byte{}, unsafe.Slice(at[byte](from), n)...)})
	return function[writeFunc](original.FxWrite)(tls, file, from, n, offset)
}

func shimTruncate(tls *libc.TLS, file uintptr, size sqlite3.Tsqlite3_int64) int32 {
	f, original := opened(file)
	f.disk.change(f.path, diskChange{at: size})
	return function[cutFunc](original.FxTruncate)(tls, file, size)
}

func shimSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	f, original := opened(file)
	rc := function[syncFunc](original.FxSync)(tls, file, flags)
	if rc == sqlite3.SQLITE_OK {
		f.disk.sync(f.path)
	}
	return rc
}

// powerCuts and cutEvery define the normal run: the number of power cuts, and the number of changes and syncs between
// two cuts. cutEvery is no multiple of those of a write.
const (
	powerCuts = 20
	cutEvery  = 23
)

// TestPowerLoss checks Z-D03: acknowledged writes are there after a power cut at any moment, in the middle of a write
// or of a checkpoint, whatever is lost of the data that was not forced to the disk: all of it, or any sectors.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	if problems := losePower(t, "FULL"); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}

// TestPowerLossIsNoticed checks that a store that does not force its writes to the disk fails on this disk.
func TestPowerLossIsNoticed(t *testing.T) {
	t.Parallel()
	if problems := losePower(t, "OFF"); len(problems) == 0 {
		t.Error("nothing was lost")
	}
}

// losePower writes until the power has been cut so often, and reports the errors after each cut.
func losePower(t *testing.T, synchronous string) (problems []string) {
	t.Helper()
	ctx := t.Context()
	folder := t.TempDir()
	d := newDisk(t, folder)
	s, err := Open(ctx, filepath.Join(folder, "durward.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.writer.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.ExecContext(ctx, `PRAGMA synchronous = `+synchronous); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same cuts in every run
	acked, changes := 0, 0
	type cut struct {
		folder string
		acked  int
	}
	var cuts []cut
	d.mu.Lock()
	d.before = func() {
		if changes++; changes%cutEvery != 0 || len(cuts) == powerCuts {
			return
		}
		left := cut{t.TempDir(), acked}
		share := float64(len(cuts)%3) * 0.4 // of the sectors that reach the disk although they were not forced
		if err := d.cut(left.folder, func() bool { return random.Float64() < share }); err != nil {
			t.Error(err)
		}
		cuts = append(cuts, left)
	}
	d.mu.Unlock()
	done := func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(cuts) == powerCuts
	}
	for version := 1; !done(); version++ {
		audited := storage.WithAudit(ctx, &storage.Audited{Node: "node", Entries: []storage.AuditEntry{{ID: strconv.Itoa(version)}}})
		if err := s.AddDataKey(audited, storage.DataKey{Version: version, Wrapped: []byte(strings.Repeat(strconv.Itoa(version), 100))}); err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		acked = version
		d.mu.Unlock()
		if version%7 == 0 {
			if _, err := s.writer.ExecContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, c := range cuts {
		if err := soundAfter(ctx, c.folder, c.acked); err != nil {
			problems = append(problems, fmt.Sprintf("cut %d, after %d writes: %v", i, c.acked, err))
		}
	}
	t.Logf("%d writes, %d changes and syncs, %d cuts, %d of them lost something", acked, changes, len(cuts), len(problems))
	return problems
}

// soundAfter opens the remains after a cut.
func soundAfter(ctx context.Context, folder string, acked int) error {
	s, err := Open(ctx, filepath.Join(folder, "durward.db"), Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	var sound string
	if err := s.writer.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&sound); err != nil || sound != "ok" {
		return fmt.Errorf("integrity check: %s, %w", sound, err)
	}
	keys, err := s.DataKeys(ctx)
	if err != nil {
		return err
	}
	// One more may be there: the cut came between the commit and the acknowledgement.
	if len(keys) < acked || len(keys) > acked+1 {
		return fmt.Errorf("%d writes were acknowledged, %d are there", acked, len(keys))
	}
	for i, k := range keys {
		if k.Version != i+1 || string(k.Wrapped) != strings.Repeat(strconv.Itoa(k.Version), 100) {
			return fmt.Errorf("write %d is torn", i+1)
		}
	}
	records, err := s.AuditRecords(ctx, storage.AuditFilter{})
	if err == nil && len(records) != len(keys) {
		err = fmt.Errorf("%d writes are there, and %d records of them", len(keys), len(records))
	}
	return err
}
