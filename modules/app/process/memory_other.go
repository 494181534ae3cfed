//go:build !linux

package process

// KeepMemoryPrivate does nothing on systems without such a protection.
func KeepMemoryPrivate() error { return nil }
