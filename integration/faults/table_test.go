package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	folderText = regexp.MustCompile("`([a-z0-9/]+)`")
	testText   = regexp.MustCompile(`\bTest\w+`)
)

// TestTable checks that README.md names a test for each fault, and that each of them is in the named package.
func TestTable(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| Z-") && len(cells) == 3 {
			rows[strings.TrimPrefix(cells[0], "| ")] = cells[2]
		}
	}
	for _, id := range strings.Fields("Z-F01 Z-F02 Z-F03 Z-F04 Z-F05 Z-F06 Z-F07 Z-F08 Z-F09 Z-R01 Z-R02 Z-A01 Z-A02 Z-A03 Z-A04 Z-A05 " +
		"Z-N01 Z-N02 Z-N03 Z-D01 Z-D02 Z-D03 Z-C01 Z-X01 Z-X02 Z-X03 Z-G01 Z-G02 Z-G03 Z-G04 Z-U01 Z-U02 Z-U03 Z-U04 Z-O01 Z-O02 Z-O03 Z-O04 Z-O05") {
		if rows[id] == "" {
			t.Errorf("%s is missing", id)
		}
	}
	for id, proof := range rows {
		for part := range strings.SplitSeq(proof, ";") {
			folder := "integration/faults"
			if found := folderText.FindStringSubmatch(part); found != nil {
				folder = found[1]
			}
			for _, name := range testText.FindAllString(part, -1) {
				if !holds(t, folder, "func "+name+"(") {
					t.Errorf("%s: there is no %s in %s", id, name, folder)
				}
			}
		}
	}
}

// holds reports whether a text is in a folder's tests.
func holds(t *testing.T, folder, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), text) {
			return true
		}
	}
	return false
}
