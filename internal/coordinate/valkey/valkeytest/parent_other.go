//go:build !linux

package valkeytest

import "os/exec"

// dieWithParent does nothing: only Linux knows how.
func dieWithParent(*exec.Cmd) {}
