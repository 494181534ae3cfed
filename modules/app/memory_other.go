//go:build !linux

package app

// keepMemoryPrivate does nothing on systems without such a protection.
func keepMemoryPrivate() error { return nil }
