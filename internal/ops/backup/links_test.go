//go:build unix

package backup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJournalOnAnotherDisk checks that an archive holds the journals where their directory is a link.
func TestJournalOnAnotherDisk(t *testing.T) {
	from := node(t)
	disk := filepath.Join(t.TempDir(), "journals")
	link(t, filepath.Join(from.Directory, "audit"), disk)
	to := target(t)
	if _, err := Read(t.Context(), write(t, from), to); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, tree(t, to.Directory)); diff != "" {
		t.Error(diff)
	}
}

// link moves a directory to another place, and leaves a link to it.
func link(t *testing.T, directory, place string) {
	t.Helper()
	if err := os.Rename(directory, place); err != nil {
		t.Fatal(err)
	}
	symlink(t, place, directory)
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// TestLinkBelow checks that no archive is made without the files behind a link, nor with files of elsewhere.
func TestLinkBelow(t *testing.T) {
	from := node(t)
	link(t, filepath.Join(from.Directory, "audit", "00112233445566aa"), filepath.Join(t.TempDir(), "elsewhere"))
	archive := filepath.Join(t.TempDir(), "b")
	if _, err := Write(t.Context(), from, archive); err == nil || !strings.Contains(err.Error(), "00112233445566aa is a symbolic link") {
		t.Errorf("got %v", err)
	}
	if left := tree(t, filepath.Dir(archive)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestPlantedArchive checks that a link in the place of the unfinished archive does not lead a backup to another file.
func TestPlantedArchive(t *testing.T) {
	directory := t.TempDir()
	put(t, directory, map[string]string{"victim": "precious"})
	symlink(t, filepath.Join(directory, "victim"), filepath.Join(directory, "b.part"))
	if _, err := Write(t.Context(), node(t), filepath.Join(directory, "b")); err == nil || !strings.Contains(err.Error(), "b.part is not a file") {
		t.Errorf("got %v", err)
	}
	if _, err := openPart(filepath.Join(directory, "b.part")); err == nil { // planted after the first look
		t.Error("it was opened")
	}
	if diff := cmp.Diff(map[string]string{"victim": "precious"}, tree(t, directory)); diff != "" {
		t.Error(diff)
	}
}

// TestReadableRemainder checks that an archive is for its owner alone, whatever the rights of the file that is there already.
func TestReadableRemainder(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "b")
	put(t, filepath.Dir(archive), map[string]string{"b.part": "half"})
	if err := os.Chmod(archive+".part", 0o666); err != nil { //nolint:gosec // the mistake of somebody else
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), node(t), archive); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(archive); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestReplacedPlace checks that a restore goes on in the directory that it made, when a link is put in its place: the files
// are neither written nor given to another owner where that leads.
func TestReplacedPlace(t *testing.T) {
	directory := t.TempDir()
	made, victim := filepath.Join(directory, "made"), filepath.Join(directory, "victim")
	root, err := makeRoot(made)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	put(t, victim, map[string]string{"precious": "yes"})
	link(t, made, filepath.Join(directory, "moved"))
	if err := os.Remove(made); err != nil {
		t.Fatal(err)
	}
	symlink(t, victim, made)
	if _, err := unpack(t.Context(), write(t, node(t)), root); err != nil {
		t.Fatal(err)
	}
	if err := giveTo(directory, root); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"precious": "yes"}, tree(t, victim)); diff != "" {
		t.Error(diff)
	}
	if got := tree(t, filepath.Join(directory, "moved")); got[StoreName] != "the store" {
		t.Errorf("unpacked: %v", got)
	}
}
