package pgtest

import "syscall"

// dieWithParent has the kernel stop the server when who started it dies.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
