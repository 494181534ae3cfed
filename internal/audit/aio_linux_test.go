//go:build amd64 || arm64

package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// ringFileFor makes a segment's file that is written past the page cache and without waiting in the kernel.
func ringFileFor(t *testing.T) *ringFile {
	t.Helper()
	r := ringFor(t, 1)
	f, err := createFile(filepath.Join(filepath.Dir(r.path), "segment"), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = f.Release() // a test may have
		if err := r.remove(); err != nil {
			t.Error(err)
		}
	})
	m, ok := f.(*ringFile)
	if !ok || m.direct == nil {
		t.Fatal(noRing)
	}
	if r.aio == nil || r.syncing.aio == nil {
		t.Fatal("this system has no asynchronous writes: see fs.aio-max-nr")
	}
	return m
}

// writeSome writes something and syncs it, and returns what the sync said.
func writeSome(t *testing.T, m *ringFile) error {
	t.Helper()
	if _, err := m.Write(bytes.Repeat([]byte{'x'}, 5_000)); err != nil {
		t.Fatal(err)
	}
	return m.Sync()
}

// TestSyncs: what was written to the file or cut off it is forced to the disk by the sync behind it, by the next one where that fails,
// and once.
func TestSyncs(t *testing.T) {
	m := ringFileFor(t)
	state := func(writes, synced int64) {
		t.Helper()
		if m.writes != writes || m.synced != synced {
			t.Errorf("%d writes, %d of them are on the disk; instead of %d and %d", m.writes, m.synced, writes, synced)
		}
	}
	sync := func() {
		t.Helper()
		if err := writeSome(t, m); err != nil {
			t.Fatal(err)
		}
	}
	sync()
	state(1, 1)
	m.ring.aio.giveBack()
	m.ring.aio = nil
	sync()
	state(2, 2)
	m.ring.syncing.aio.giveBack()
	m.ring.syncing.aio = nil
	sync()
	state(3, 3)
	if err := m.direct.Close(); err != nil {
		t.Fatal(err)
	}
	sync()
	state(5, 5) // the one that fails counts too
	if _, err := m.Write(bytes.Repeat([]byte{'x'}, ringRoom+1)); err != nil {
		t.Fatal(err)
	}
	state(6, 5)
	whole := m.file
	read, _, err := os.Pipe() // cannot be synced
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	m.file = read
	for range 2 {
		if err := m.Sync(); !errors.Is(err, unix.EINVAL) {
			t.Errorf("a sync that fails: %v", err)
		}
	}
	m.file = whole
	state(6, 5)
	if err := m.Sync(); err != nil {
		t.Error(err)
	}
	state(6, 6)
	if err := m.Truncate(5_000); err != nil {
		t.Fatal(err)
	}
	state(7, 6)
	m.file = read
	if err := m.Sync(); !errors.Is(err, unix.EINVAL) {
		t.Errorf("the sync of what was cut off: %v", err)
	}
	m.file = whole
	if err := m.Sync(); err != nil {
		t.Error(err)
	}
	state(7, 7)
	m.file = read
	if err := m.Sync(); err != nil {
		t.Errorf("all of it is on the disk, and was synced once more: %v", err)
	}
	m.file = whole
}

// brokenPipe takes a write and fails at it.
func brokenPipe(t *testing.T) *os.File {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = write.Close() }) // a test may have
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	return write
}

// spoilt gives a ring others for its writes and its syncs.
func spoilt(m *ringFile, others aio) {
	for _, a := range []**aio{&m.ring.aio, &m.ring.syncing.aio} {
		if (*a).context != 0 {
			(*a).giveBack()
		}
		another := others
		*a = &another
	}
}

// TestAIORefused: a kernel that takes no asynchronous write or sync, or fails at a write, loses nothing: plain ones do it, and at
// last the page cache.
func TestAIORefused(t *testing.T) {
	broken := brokenPipe(t)
	for name, tc := range map[string]struct {
		spoil  func(m *ringFile)
		direct bool // still
	}{
		"when it is handed in": {func(m *ringFile) { spoilt(m, aio{}) }, true},
		"since one was lost":   {func(m *ringFile) { spoilt(m, aio{lost: true}) }, true},
		"when it is done":      {func(m *ringFile) { m.direct = broken }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := ringFileFor(t)
			if err := writeSome(t, m); err != nil {
				t.Fatal(err)
			}
			tc.spoil(m)
			defer spoilt(m, aio{lost: true}) // no other test gets it
			for range 3 {
				if err := writeSome(t, m); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(m.file.Name())
			if want := bytes.Repeat([]byte{'x'}, 20_000); err != nil || !bytes.Equal(trimZeros(got), want) {
				t.Errorf("%d bytes, %v", len(trimZeros(got)), err)
			}
			if (m.direct != nil) != tc.direct || m.writes < 4 || m.synced != m.writes {
				t.Errorf("past the page cache: %v, %d of %d writes synced", m.direct != nil, m.synced, m.writes)
			}
		})
	}
}

// TestIdleAIOs: what is given back is the next one's, and only one's.
func TestIdleAIOs(t *testing.T) {
	a, b := takeAIO(), takeAIO()
	if a == nil || b == nil {
		t.Fatal("this system has no asynchronous writes: see fs.aio-max-nr")
	}
	a.giveBack()
	b.giveBack()
	c, d := takeAIO(), takeAIO()
	defer c.giveBack()
	defer d.giveBack()
	if c != b || d != a {
		t.Error("what was given back is not taken again, or by two")
	}
}

// TestAIO: what is written comes to its place, what a file does not take is an error, and what the next one writes is its own.
func TestAIO(t *testing.T) {
	a := takeAIO()
	if a == nil {
		t.Fatal("this system has no asynchronous writes: see fs.aio-max-nr")
	}
	defer a.giveBack()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	broken := brokenPipe(t)
	for range 3 {
		if n, err := a.write(f, [][]byte{[]byte("one "), []byte("two "), []byte("three")}, 3); n != 13 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := a.write(broken, [][]byte{[]byte("more")}, 0); n != 0 || !errors.Is(err, unix.EPIPE) {
			t.Fatal(n, err)
		}
	}
	if got, err := os.ReadFile(f.Name()); string(got) != "\x00\x00\x00one two three" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := a.sync(f); err != nil {
		t.Error(err)
	}
	if err := a.sync(broken); !errors.Is(err, errNotTaken) {
		t.Errorf("a sync of what has none: %v", err)
	}
	if kept := a.parts[:cap(a.parts)]; len(a.parts) > 0 || slices.ContainsFunc(kept, func(p unix.Iovec) bool { return p.Base != nil }) {
		t.Error("it still points to what was written, which may be memory of others by now")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.write(f, [][]byte{[]byte("late")}, 0); err == nil {
		t.Error("a file that was closed is written to")
	}
	if err := a.sync(f); err == nil || errors.Is(err, errNotTaken) {
		t.Errorf("the sync of a file that was closed: %v", err)
	}
}
