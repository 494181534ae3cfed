package strictjson

import (
	"fmt"
	"math"
)

// Defaults of the fields of Limits.
const (
	DefaultMaxBytes   = 4 << 20
	DefaultMaxDepth   = 64
	DefaultMaxMembers = 10_000
)

// MaxNumberLength caps the lexeme of a number, in bytes: converting a longer one can take excessive work (attack
// B05).
const MaxNumberLength = 1_000

// maxText keeps offsets within 31 bits, whatever the limits say.
const maxText = math.MaxInt32

// Limits bounds the size of a text. A zero field means its default.
type Limits struct {
	MaxBytes   int // length of the whole text
	MaxDepth   int // nesting of arrays and objects; a scalar has depth 0
	MaxMembers int // members of each one object; elements of arrays are bounded by MaxBytes alone
}

func (l Limits) withDefaults() Limits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	l.MaxBytes = min(l.MaxBytes, maxText)
	if l.MaxDepth <= 0 {
		l.MaxDepth = DefaultMaxDepth
	}
	if l.MaxMembers <= 0 {
		l.MaxMembers = DefaultMaxMembers
	}
	return l
}

// Reasons of a SyntaxError. They are safe to show: no part of the text is in them.
const (
	ReasonBOM           = "byte order mark"
	ReasonControl       = "control character in string"
	ReasonDepth         = "nested too deeply"
	ReasonDuplicate     = "duplicate member"
	ReasonEnd           = "unexpected end of text"
	ReasonEscape        = "invalid escape in string"
	ReasonMembers       = "too many members in object"
	ReasonNumber        = "invalid number"
	ReasonNumberLength  = "number too long"
	ReasonSize          = "text too large"
	ReasonSurrogate     = "lone surrogate in string"
	ReasonTrailing      = "data after the value"
	ReasonUnexpected    = "unexpected character"
	ReasonUTF8          = "invalid UTF-8"
	reasonColonExpected = "expected ':' after member name"
	reasonNameExpected  = "expected a member name"
	reasonCommaObject   = "expected ',' or '}' after member"
	reasonCommaArray    = "expected ',' or ']' after element"
)

// SyntaxError says why a text is refused, and where.
type SyntaxError struct {
	Offset int    // in bytes, of the first refused byte
	Reason string // one of the Reason constants or another short text
}

// Error implements error.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }

// WellFormed reports whether the text up to Offset follows the grammar of RFC 8259 and is refused only by the
// additional rules of this package: no duplicate members, and limits.
func (e *SyntaxError) WellFormed() bool {
	switch e.Reason {
	case ReasonDuplicate, ReasonDepth, ReasonMembers, ReasonNumberLength, ReasonSize:
		return true
	}
	return false
}
