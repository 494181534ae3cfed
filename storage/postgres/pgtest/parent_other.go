//go:build !linux

package pgtest

import "syscall"

// dieWithParent does nothing: only Linux knows how.
func dieWithParent(*syscall.SysProcAttr) {}
