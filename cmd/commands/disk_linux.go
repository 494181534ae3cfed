package commands

import (
	"io/fs"
	"os"
	"syscall"
)

// heldBy reports whether a file belongs to another user, who gave this one access, and whether its file system is
// mounted read-only. For root the first is always false: root needs no such access, and reads the files of the
// gateway's user.
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
