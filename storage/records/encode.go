package records

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/durward-gateway/durward/storage"
)

// timeColumn reads microseconds since 1970 into a UTC time. The zero time survives the way there and back.
type timeColumn struct{ to *time.Time }

func (c timeColumn) Scan(v any) error {
	micros, ok := v.(int64)
	if !ok {
		return fmt.Errorf("reading a time: got %T", v)
	}
	*c.to = time.UnixMicro(micros).UTC()
	return nil
}

// flagColumn reads 0 or 1.
type flagColumn struct{ to *bool }

func (c flagColumn) Scan(v any) error {
	flag, ok := v.(int64)
	if !ok {
		return fmt.Errorf("reading a flag: got %T", v)
	}
	*c.to = flag != 0
	return nil
}

// never returns the stored form of the zero time.
func never() int64 { return time.Time{}.UnixMicro() }

// micros returns a time with the store's precision.
func micros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// jsonColumn reads JSON text of our own making.
type jsonColumn struct{ to any }

func (c jsonColumn) Scan(v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("reading JSON: got %T", v)
	}
	return json.Unmarshal([]byte(text), c.to)
}

// approversColumn reads lists of people; empty text is none.
type approversColumn struct{ to *[][]string }

func (c approversColumn) Scan(v any) error {
	if v == "" {
		*c.to = nil
		return nil
	}
	return jsonColumn{c.to}.Scan(v)
}

// approversText writes lists of people.
func approversText(lists [][]string) (string, error) {
	if len(lists) == 0 {
		return "", nil
	}
	return jsonTexts(lists, slices.Concat(lists...)...)
}

// rawColumn reads JSON text byte for byte; empty text is nil.
type rawColumn struct{ to *json.RawMessage }

func (c rawColumn) Scan(v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("reading JSON: got %T", v)
	}
	*c.to = nil
	if text != "" {
		*c.to = json.RawMessage(text)
	}
	return nil
}

// jsonText writes values made of strings, which cannot fail.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// jsonTexts writes a value that is made of texts. Text that is not UTF-8 is refused: JSON would store another one.
func jsonTexts(v any, texts ...string) (string, error) {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return "", fmt.Errorf("%w: %.40q is not UTF-8", storage.ErrText, text)
		}
	}
	return jsonText(v), nil
}

// boolean returns the stored form of a flag.
func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// nameKey returns the form in which names are compared and sorted: without case and blanks.
func nameKey(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// window returns the limit and offset of a page. Without a limit it is everything; a page beyond the countable range
// is empty.
func window(p storage.PageRequest) (limit, offset int64) {
	if p.Limit <= 0 {
		return math.MaxInt64, 0
	}
	limit, before := int64(p.Limit), int64(max(p.Number, 1)-1)
	if before > math.MaxInt64/limit {
		return limit, math.MaxInt64
	}
	return limit, before * limit
}
