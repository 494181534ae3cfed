package commands

import (
	"io/fs"
	"os"
	"syscall"
)

// diskSpace is what is left for this user, and the size, of the file system that a path is on, in bytes.
func diskSpace(path string) (free, size uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}

// heldBy tells whether a file is another user's, who gave it to this one, and whether its file system is mounted read-only.
// Root needs nobody to give it anything: it looks at the files of the gateway's user.
func heldBy(path string, info fs.FileInfo) (others, readOnly bool) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		others = os.Geteuid() != 0 && int(stat.Uid) != os.Geteuid()
	}
	const readOnlyMount = 1 // ST_RDONLY
	var s syscall.Statfs_t
	if syscall.Statfs(path, &s) == nil {
		readOnly = s.Flags&readOnlyMount != 0
	}
	return others, readOnly
}
