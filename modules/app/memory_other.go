//go:build !linux

package app

// keepMemoryPrivate does nothing where the system offers nothing.
func keepMemoryPrivate() error { return nil }
