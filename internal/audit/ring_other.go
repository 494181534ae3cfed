//go:build !linux

package audit

// ring: there is none here, and segments are written to directly.
type ring struct{}

func createRing(string) (*ring, error) { return nil, errNoRing }

func (*ring) turn(int) error { return nil }
func (*ring) leave()         {}
func (*ring) there() bool    { return true }
func (*ring) remove() error  { return nil }
func (*ring) release() error { return nil }
