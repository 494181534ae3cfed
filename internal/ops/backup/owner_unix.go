//go:build unix

package backup

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// giveDirectory gives a directory in root to the owner of root when root, the user, runs the restore. A name that leads out of
// root, because its owner has put a link there meanwhile, fails.
func giveDirectory(root *os.Root, name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return root.Lchown(name, int(owner.Uid), int(owner.Gid))
}

// giveTo gives everything in unpacked to the owner of a directory when root runs the restore. A gateway that runs as
// another user could not open its own store otherwise.
func giveTo(directory string, unpacked *os.Root) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(directory)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	var names []string
	err = fs.WalkDir(unpacked.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	if err != nil {
		return err
	}
	// A directory comes after what is in it: its new owner could put links there to files of others.
	for _, name := range slices.Backward(names) {
		if err := unpacked.Lchown(name, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	return nil
}
