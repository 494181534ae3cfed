//go:build !linux

package pgtest

import "syscall"

// dieWithParent does nothing: only Linux can do this.
func dieWithParent(*syscall.SysProcAttr) {}
