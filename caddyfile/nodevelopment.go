//go:build nodev

package caddyfile

// development returns no directive: this binary has no development mode.
func development() []directive { return nil }
