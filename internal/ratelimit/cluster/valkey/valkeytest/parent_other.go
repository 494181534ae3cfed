//go:build !linux

package valkeytest

import "os/exec"

// dieWithParent does nothing: only Linux supports this.
func dieWithParent(*exec.Cmd) {}
