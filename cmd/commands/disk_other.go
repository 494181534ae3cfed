//go:build !linux

package commands

import "io/fs"

// heldBy returns values on Linux only.
func heldBy(string, fs.FileInfo) (others, readOnly bool) { return false, false }
