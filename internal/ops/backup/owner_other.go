//go:build !unix

package backup

// giveTo has nothing to do: files have no owner there that keeps a gateway out.
func giveTo(_, _ string) error { return nil }
