package strictjson

import (
	"errors"
	"testing"
)

// TestScannerSaysNo checks that a caller that reads another kind of value than there is, or reads on behind the end,
// gets nothing, and the reason.
func TestScannerSaysNo(t *testing.T) {
	object := func(s *Scanner) bool { return s.OpenObject(&ObjectFrame{}) }
	array := func(s *Scanner) bool { return s.OpenArray(&ArrayFrame{}) }
	str := func(s *Scanner) bool { raw, _ := s.String(); return raw != nil }
	skip := func(s *Scanner) bool { return s.Skip() != nil }
	for _, tc := range []struct {
		name, text string
		read       func(*Scanner) bool
		reason     string
		offset     int
	}{
		{"an object where nothing is", "", object, ReasonEnd, 0},
		{"an array where nothing is", "", array, ReasonEnd, 0},
		{"a string where nothing is", "", str, ReasonEnd, 0},
		{"a value where nothing is", "", skip, ReasonEnd, 0},
		{"an object that is an array", `[{}]`, object, ReasonUnexpected, 0},
		{"an array that is an object", `{"a":1}`, array, ReasonUnexpected, 0},
		{"a string that is a number", `1`, str, ReasonUnexpected, 0},
		{"a string that is open", `"a`, str, ReasonEnd, 2},
	} {
		s := NewScanner([]byte(tc.text), Limits{})
		if s.Failed() {
			t.Errorf("%s: failed before it was read", tc.name)
		}
		if tc.read(s) || !s.Failed() || s.Kind() != Invalid {
			t.Errorf("%s: failed is %v, kind %v", tc.name, s.Failed(), s.Kind())
		}
		var syntax *SyntaxError
		if err := s.End(); !errors.As(err, &syntax) || syntax.Reason != tc.reason || syntax.Offset != tc.offset {
			t.Errorf("%s: %v", tc.name, err)
		}
		if object(s) || array(s) || str(s) || skip(s) || s.NextMember(&ObjectFrame{}) || s.NextElement(&ArrayFrame{}) || !errors.Is(s.End(), syntax) {
			t.Errorf("%s: reads on after an error", tc.name)
		}
		s.Release()
	}
	s := NewScanner([]byte(`1`), Limits{})
	defer s.Release()
	if s.Kind() != Number || s.Skip() == nil || s.Kind() != Invalid || s.End() != nil {
		t.Error("behind the end is a value")
	}
}

// TestFramesAreReused checks that one frame serves for arrays one after another.
func TestFramesAreReused(t *testing.T) {
	s := NewScanner([]byte(`[[1,2],[3]]`), Limits{})
	defer s.Release()
	var outer, inner ArrayFrame
	elements := ""
	for s.OpenArray(&outer); s.NextElement(&outer); {
		for s.OpenArray(&inner); s.NextElement(&inner); {
			elements += string(s.Skip())
		}
	}
	if err := s.End(); err != nil || elements != "123" {
		t.Errorf("%q, %v", elements, err)
	}
}

// TestReleased checks that a scanner that waits for its next text holds on to nothing of the last one.
func TestReleased(t *testing.T) {
	s := NewScanner([]byte(`{"\u0061":{"b":1`), Limits{})
	s.record = true
	s.nodes = s.room[:0]
	s.Skip()
	if len(s.names) == 0 || len(s.decoded) == 0 || len(s.nodes) == 0 || !s.Failed() {
		t.Fatal("nothing to be forgotten")
	}
	s.Release()
	if s.src != nil || s.nodes != nil || s.record || s.err != nil || len(s.names) > 0 || len(s.decoded) > 0 {
		t.Error("something is left")
	}
}
