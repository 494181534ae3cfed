package overload

import "context"

// largeBody is the size in bytes above which a body is not taken while memory is short.
const largeBody = 64 << 10

// Work is new work that may be refused.
type Work struct {
	// Lasting reports whether the work stays: streams, sessions.
	Lasting bool
	// Body is the size of its body in bytes; negative: unknown. Most is the limit for bodies.
	Body, Most int64
}

// Refuses reports whether work must be refused because memory is short. At the critical level this is any work. At the
// high level it is work with a large body, or work that stays. A large body is also refused when there is no room for it
// beside those that are being read; the room for one of unknown length is that of the limit. The room is taken until ctx
// is done. Running streams and calls go on.
func (m *Meter) Refuses(ctx context.Context, w Work) bool {
	large := w.Body < 0 || w.Body > largeBody
	switch m.Level() {
	case Critical:
		return true
	case High:
		return w.Lasting || large
	}
	if !large || w.Lasting || w.Body > w.Most { // a body above the limit is refused before it is read
		return false
	}
	size := w.Body
	if size < 0 {
		size = w.Most
	}
	done, ok := m.Admit(2 * size) // while a buffer grows, the smaller one before it is in memory too
	if ok {
		context.AfterFunc(ctx, done)
	}
	return !ok
}
