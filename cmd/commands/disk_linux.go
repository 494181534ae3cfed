package commands

import "syscall"

// diskSpace is what is left for this user, and the size, of the file system that a path is on, in bytes.
func diskSpace(path string) (free, size uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}
