package valkeytest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the server when its parent dies.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
