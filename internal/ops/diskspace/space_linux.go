package diskspace

import "syscall"

// Of returns the free space for this user, and the size, of the file system of a path, in bytes.
func Of(path string) (free, size uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}
