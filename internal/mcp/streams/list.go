package streams

// list links streams through pointers in them: every call is added and removed, which so needs no map.
type list struct {
	first *stream
	n     int
}

func (l *list) add(s *stream) {
	s.in, s.before, s.after = l, nil, l.first
	if l.first != nil {
		l.first.before = s
	}
	l.first = s
	l.n++
}

// remove takes a stream out of its list.
func (s *stream) remove() {
	l := s.in
	if s.before != nil {
		s.before.after = s.after
	} else {
		l.first = s.after
	}
	if s.after != nil {
		s.after.before = s.before
	}
	s.in, s.before, s.after = nil, nil, nil
	l.n--
}
