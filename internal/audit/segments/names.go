// Package segments finds and reads the files of journals. It tells which of their lines the gateway has written.
package segments

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/internal/audit/format"
)

// Suffix is the suffix of a segment's file.
const Suffix = ".ndjson"

// DamagedSuffix is the suffix of a segment with malformed lines. Such a segment is renamed and kept, because it is
// evidence.
const DamagedSuffix = ".damaged"

// MaxNumber is greater than any segment's number.
const MaxNumber = 1 << 30

// Name returns the name of a segment.
func Name(number int) string { return fmt.Sprintf("%08d", number) }

// Number reads a segment's number from its name. It returns 0 and false for a name that no segment can have.
func Number(name string) (int, bool) {
	n, err := strconv.Atoi(name)
	if err != nil || n <= 0 || n >= MaxNumber || Name(n) != name {
		return 0, false
	}
	return n, true
}

// List lists the numbers of the segments in a journal's directory.
func List(dir string) ([]int, error) { return NumbersOf(dir, Suffix) }

// NumbersOf lists the numbers of the files with that suffix, in order.
func NumbersOf(dir, suffix string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), suffix); ok {
			if n, ok := Number(name); ok {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// Path returns the path of a segment in a journal's directory.
func Path(dir string, number int) string {
	return filepath.Join(dir, Name(number)+Suffix)
}

// FormatOf returns the format in a segment's first line. It returns 0 when the line cannot be read; the next code that
// opens the segment reports that.
func FormatOf(dir string, number int) int {
	f, err := os.Open(Path(dir, number))
	if err != nil {
		return 0
	}
	defer f.Close()
	first, err := format.NewLines(f).Next()
	var h format.Header
	if err != nil || json.Unmarshal(first, &h) != nil {
		return 0
	}
	return h.Format
}

// Aside lists the names of the files that were set aside in a journal's directory, whatever the rest of a name is: one that
// was renamed is still to be found.
func Aside(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), DamagedSuffix) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// IsNode reports whether a node can have this name. Other names, which a store may state, lead out of the directory of
// journals, or cannot be opened.
func IsNode(name string) bool {
	id, err := hex.DecodeString(name)
	return err == nil && len(id) == 8
}

// Nodes lists the directories of journals.
func Nodes(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, entry := range entries {
		if IsNode(entry.Name()) && entry.IsDir() {
			dirs = append(dirs, filepath.Join(root, entry.Name()))
		}
	}
	return dirs, nil
}

// ErrLocked reports that another process has the journal.
var ErrLocked = errors.New("in use")
