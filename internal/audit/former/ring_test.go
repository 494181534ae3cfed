package former

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ringAt returns the contents of the ring when so much of a text is written.
func ringAt(text string, written int) []byte {
	data := make([]byte, ringSize)
	for from := max(0, written-ringSize); from < written; {
		end := min(from/ringSize*ringSize+ringSize, written)
		copy(data[from%ringSize:], text[from:end])
		from = end
	}
	return data
}

// TestRingBehind checks that only bytes that a ring can hold are taken from it.
func TestRingBehind(t *testing.T) {
	text := strings.Repeat("0123456789abcde\n", ringSize/8)
	for _, c := range []struct {
		number  int
		written int64
		at      int64
		want    int64
	}{
		{1, 100, 40, 60},
		{1, 100, 100, 0},
		{1, 100, 200, 0},
		{2, 100, 40, 0},
		{1, ringSize + 100, ringSize - 50, 150},
		{1, ringSize + 100, 100, ringSize},
		{1, ringSize + 100, 99, 0},
		{1, 2 * ringSize, ringSize, ringSize},
	} {
		r := Ring{Number: c.number, written: c.written, data: ringAt(text, int(c.written))}
		want := ""
		if c.want > 0 {
			want = text[c.at : c.at+c.want]
		}
		if got := r.Behind(1, c.at); string(got) != want {
			t.Errorf("%+v: %d bytes", c, len(got))
		}
	}
}

// TestRingDocumented checks that a reader that follows the documentation finds the lines of a ring.
func TestRingDocumented(t *testing.T) {
	manual, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "audit-format.md"))
	if err != nil {
		t.Fatal(err)
	}
	// The positions of line ends make no difference.
	text := strings.Join(strings.Fields(string(manual)), " ")
	for _, says := range []string{
		fmt.Sprintf("a file of %d,%03d,%03d bytes", (ringHead+ringSize)/1_000_000, (ringHead+ringSize)/1_000%1_000, (ringHead+ringSize)%1_000),
		fmt.Sprintf("| 0 to 7 | `%s` |", ringMark),
		fmt.Sprintf("| %d to %d | the last bytes of the segment: byte `n`, from 0, stands at %d + `n` mod %d |", ringHead, ringHead+ringSize-1, ringHead, ringSize),
	} {
		if !strings.Contains(text, says) {
			t.Errorf("docs/audit-format.md does not say %q", says)
		}
	}
}
