//go:build unix

package backup

import (
	"io/fs"
	"os"
	"syscall"
)

// giveTo gives everything below unpacked to the owner of a directory when root runs the restore. A gateway that runs as
// another user could not open its own store otherwise.
func giveTo(directory, unpacked string) error {
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
	root, err := os.OpenRoot(unpacked)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return root.Lchown(name, int(owner.Uid), int(owner.Gid))
	})
}
