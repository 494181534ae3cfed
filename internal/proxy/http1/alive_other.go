//go:build !unix

package http1

import "syscall"

// liveness returns a function that always says yes: this system offers no such test. A connection that the upstream
// closed is noticed when it is used.
func liveness(syscall.RawConn) func() bool { return func() bool { return true } }
