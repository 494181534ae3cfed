package valkeytest

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the server when who started it dies.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
