package pgtest

import "syscall"

// dieWithParent has the kernel stop the server when its parent process dies.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
