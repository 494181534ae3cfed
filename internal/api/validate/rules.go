package validate

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Flags says whether a field is required, may be null, and may be shown.
type Flags uint8

// Flags of fields. Zero: optional, not null, shown.
const (
	Required Flags = 1 << iota
	Nullable
	Secret // the value is never part of a problem
)

func (f Flags) has(flag Flags) bool { return f&flag != 0 }

// Bounds that apply where a rule gives none.
const (
	DefaultMaxText = 4_096
	DefaultMaxList = 1_000
)

// Text is the rule of a string. Lengths are in characters (code points).
type Text struct {
	Flags   Flags
	Min     int
	Max     int // zero means DefaultMaxText
	Pattern *regexp.Regexp
	Enum    []string // nil: any
}

// Integer is the rule of an integer.
type Integer struct {
	Flags Flags
	Min   int64 // zero is a bound too: no field of the API is negative unless its rule says so
	Max   int64 // zero means math.MaxInt64
}

// List is the rule of an array. Its elements are checked only when their number is right.
type List struct {
	Flags Flags
	Min   int
	Max   int // zero means DefaultMaxList
	// Hold keeps the places of invalid elements, as zero values, and in a query those of repetitions. It is for
	// callers that report more about the others.
	Hold bool
}

const (
	msgMissing = "Field required"
	msgString  = "Input should be a valid string"
	msgUUID    = "Input should be a valid UUID"
	msgInt     = "Input should be a valid integer"
	msgBool    = "Input should be a valid boolean"
	msgList    = "Input should be a valid list"
	msgDict    = "Input should be a valid object"
	msgNUL     = "Value error, a string must not contain the character NUL"
	msgTime    = "Value error, the time must be in the format of RFC 3339"
)

// fault is a Problem without its place.
type fault struct {
	kind, msg string
	ctx       map[string]any
}

// check returns the problem of s, nil when there is none.
func (r Text) check(s string) *fault {
	// PostgreSQL's text cannot hold it (attack B06).
	if strings.IndexByte(s, 0) >= 0 {
		return &fault{ValueError, msgNUL, nil}
	}
	if r.Enum != nil {
		if slices.Contains(r.Enum, s) {
			return nil
		}
		return enumFault(r.Enum)
	}
	limit := r.Max
	if limit == 0 {
		limit = DefaultMaxText
	}
	switch n := utf8.RuneCountInString(s); {
	case n < r.Min:
		return &fault{StringTooShort, "String should have at least " + count(r.Min, "character"), map[string]any{"min_length": r.Min}}
	case n > limit:
		return &fault{StringTooLong, "String should have at most " + count(limit, "character"), map[string]any{"max_length": limit}}
	}
	if r.Pattern != nil && !r.Pattern.MatchString(s) {
		return &fault{StringPatternMismatch, "String should match pattern '" + r.Pattern.String() + "'", map[string]any{"pattern": r.Pattern.String()}}
	}
	return nil
}

func enumFault(allowed []string) *fault {
	quoted := make([]string, len(allowed))
	for i, s := range allowed {
		quoted[i] = "'" + s + "'"
	}
	expected := strings.Join(quoted, ", ")
	return &fault{Enum, "Input should be one of " + expected, map[string]any{"expected": expected}}
}

// parse reads an integer in its one canonical form, -?(0|[1-9][0-9]*) without -0 (attacks B05, G01): a number that
// some reader would round, or that has two spellings, is refused.
func (r Integer) parse(lexeme string) (int64, *fault) {
	digits, negative := strings.CutPrefix(lexeme, "-")
	if digits == "" || digits[0] == '0' && (len(digits) > 1 || negative) {
		return 0, &fault{IntParsing, msgInt, nil}
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, &fault{IntParsing, msgInt, nil}
		}
	}
	limit := r.Max
	if limit == 0 {
		limit = math.MaxInt64
	}
	// ParseInt cuts a number that it cannot hold to the nearest bound, which is beyond or at ours.
	n, err := strconv.ParseInt(lexeme, 10, 64)
	switch {
	case n < r.Min || err != nil && negative:
		return 0, &fault{GreaterThanEqual, "Input should be greater than or equal to " + strconv.FormatInt(r.Min, 10), map[string]any{"ge": r.Min}}
	case n > limit || err != nil:
		return 0, &fault{LessThanEqual, "Input should be less than or equal to " + strconv.FormatInt(limit, 10), map[string]any{"le": limit}}
	}
	return n, nil
}

// check returns the problem of an array with n elements, nil when there is none.
func (r List) check(n int) *fault {
	limit := r.Max
	if limit == 0 {
		limit = DefaultMaxList
	}
	switch {
	case n < r.Min:
		return &fault{TooShort, "List should have at least " + count(r.Min, "item"), map[string]any{"min_length": r.Min, "actual_length": n}}
	case n > limit:
		return &fault{TooLong, "List should have at most " + count(limit, "item"), map[string]any{"max_length": limit, "actual_length": n}}
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
