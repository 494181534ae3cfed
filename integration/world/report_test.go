package world

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Sections of docs/compatibility.md, in their order.
const (
	mcpServers        = "MCP servers"
	mcpClients        = "MCP clients"
	identityProviders = "Identity providers"
	modelClients      = "Clients of models"
)

var sections = []string{mcpServers, mcpClients, identityProviders, modelClients}

// row is a row of docs/compatibility.md.
type row struct {
	section, software, version string
	tried                      string // the tests that were made with it
	remark                     string // remarks for readers
	ours                       string // why the gateway differs on purpose: the request and the reason
	result                     string
}

// onPurpose is the result of a row whose server and gateway differ because the gateway is made so.
const onPurpose = "ours, on purpose"

var report struct {
	mu   sync.Mutex
	rows []row
}

// record puts a row into the report when the test ends; its result is the test's.
func record(t *testing.T, r *row) {
	t.Helper()
	t.Cleanup(func() {
		switch {
		case t.Skipped():
			return
		case t.Failed():
			r.result = "**fails**"
		case r.ours != "":
			r.result = onPurpose
		default:
			r.result = "passes"
		}
		report.mu.Lock()
		defer report.mu.Unlock()
		report.rows = append(report.rows, *r)
	})
}

// writeReport writes the rows to a file; without a name it does nothing.
func writeReport(path string) error {
	if path == "" {
		return nil
	}
	report.mu.Lock()
	defer report.mu.Unlock()
	return os.WriteFile(path, []byte(compatibility(report.rows, time.Now())), 0o644) //nolint:gosec // a page of the documentation
}

// compatibility returns the text of the page.
func compatibility(rows []row, now time.Time) string {
	var page strings.Builder
	fmt.Fprintf(&page, `# What the gateway was tried with

Software that others wrote, unmodified, run directly and through the gateway on %s by `+"`make world`"+`
([integration/world](../integration/world/README.md)), which writes this page. An MCP server passes when every probe gives the same
both ways after ids and times are masked. A row that is not green says why.
`, now.UTC().Format(time.DateOnly))
	for _, section := range sections {
		of := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.section != section })
		if len(of) == 0 {
			continue
		}
		slices.SortFunc(of, func(a, b row) int {
			return cmp.Or(cmp.Compare(a.software, b.software), cmp.Compare(a.tried, b.tried))
		})
		fmt.Fprintf(&page, "\n## %s\n\n| software | version | tried | result | remark |\n|---|---|---|---|---|\n", section)
		for _, r := range of {
			remark := strings.Join(slices.DeleteFunc([]string{r.ours, r.remark}, func(s string) bool { return s == "" }), " ")
			cells := []string{r.software, r.version, r.tried, r.result, remark}
			for i, cell := range cells {
				cells[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(cell)
			}
			fmt.Fprintf(&page, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	return page.String()
}

func TestReport(t *testing.T) {
	t.Parallel()
	page := compatibility([]row{
		{section: mcpClients, software: "b", version: "2", tried: "login", result: "passes"},
		{section: mcpServers, software: "a", version: "1", tried: "probes", result: onPurpose, ours: "GET|POST is refused."},
	}, time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC))
	for _, want := range []string{"on 2026-11-25", "| a | 1 | probes | ours, on purpose | GET\\|POST is refused. |", "| b | 2 | login | passes |  |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Index(page, mcpServers) > strings.Index(page, mcpClients) {
		t.Errorf("the sections are in another order:\n%s", page)
	}
}
