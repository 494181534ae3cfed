package records

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSameTables compares the columns of the stores' schemas, in their order.
func TestSameTables(t *testing.T) {
	t.Parallel()
	columns := func(pattern string) map[string][]string {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		tables := make(map[string][]string)
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			table := ""
			for line := range strings.Lines(string(text)) {
				words := strings.Fields(line)
				switch {
				case len(words) > 4 && words[0] == "ALTER" && words[3] == "ADD" && words[4] == "COLUMN":
					tables[words[2]] = append(tables[words[2]], words[5])
				case len(words) > 2 && words[0] == "CREATE" && words[1] == "TABLE":
					table = words[2]
					tables[table] = nil // a later step makes it anew
				case strings.HasPrefix(line, ")"):
					table = ""
				case table != "" && strings.HasPrefix(line, "    ") && words[0] == strings.ToLower(words[0]) && words[0] != "--" && words[0] != "xact":
					tables[table] = append(tables[table], words[0])
				}
			}
		}
		return tables
	}
	here, there := columns("../postgres/migrations/*.up.sql"), columns("../sqlite/migrations/*.up.sql")
	if diff := cmp.Diff(there, here); diff != "" {
		t.Errorf("(-sqlite +postgres)\n%s", diff)
	}
}

// TestTextsSortByBytes checks that PostgreSQL sorts texts as SQLite does. A store that is moved is read from both in the
// order of their keys.
func TestTextsSortByBytes(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../postgres/migrations/*.up.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			column := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "ALTER TABLE ")
			if column && strings.Contains(line, " TEXT ") && !strings.Contains(line, ` TEXT COLLATE "C"`) {
				t.Errorf("%s: a column that is TEXT has to be TEXT COLLATE \"C\": %s", name, strings.TrimSpace(line))
			}
		}
	}
}
