//go:build !unix

package http1

import "syscall"

// liveness cannot be asked for here: a connection that the upstream closed is found out when it is used.
func liveness(syscall.RawConn) func() bool { return func() bool { return true } }
