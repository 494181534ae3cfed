//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package access

// may always returns nil here: it checks the access rights of Unix.
func may(string, string, bool) error { return nil }
