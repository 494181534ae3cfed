package connection

// visible reports whether s has only visible ASCII characters, and blanks if they are allowed.
func visible(s string, blanks bool) bool {
	for i := range len(s) {
		if c := s[i]; c > '~' || c < ' ' || (c == ' ' && !blanks) {
			return false
		}
	}
	return true
}
