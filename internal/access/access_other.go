//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package access

// may is told where Unix's rights are.
func may(string, string, bool) error { return nil }
