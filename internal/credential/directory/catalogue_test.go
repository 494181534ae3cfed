package directory

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// documented is a row of the table in docs/providers.md.
type documented struct {
	Provider string
	Settings []string // as in the Caddyfile
	Source   string   // "": none was read
	Read     string
}

// never stands where no source was read.
const never = "never"

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	link     = regexp.MustCompile(`\]\((https://[^)]+)\)`)
)

// documentedEntries returns the rows of the table, by the slug of the entry.
func documentedEntries(t *testing.T) map[string]documented {
	t.Helper()
	text, err := os.ReadFile("../../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| provider | entry | what it needs, and why | source | read |\n")
	if !found {
		t.Fatal("the table is not there")
	}
	rows := make(map[string]documented)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		switch {
		case strings.HasPrefix(line, "|---"):
			continue
		case !strings.HasPrefix(line, "|"):
			return rows
		case len(cells) != 5:
			t.Fatalf("%d cells: %s", len(cells), line)
		}
		row := documented{Provider: strings.TrimPrefix(cells[0], "| "), Read: strings.TrimSuffix(cells[4], " |")}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[2], -1) {
			if word, _, more := strings.Cut(span[1], " "); more && slices.Contains(words, word) {
				row.Settings = append(row.Settings, span[1])
			}
		}
		if at := link.FindStringSubmatch(cells[3]); at != nil {
			row.Source = at[1]
		}
		slices.Sort(row.Settings)
		slug := strings.Trim(cells[1], "`")
		if _, twice := rows[slug]; twice {
			t.Errorf("%s has two rows", slug)
		}
		rows[slug] = row
	}
	return rows
}

// settings lists the settings of an entry in addition to its addresses, as in the Caddyfile.
func settings(e storage.DirectoryEntry) []string {
	var set []string
	if e.Public {
		set = append(set, "public on")
	}
	if len(e.Scopes) > 0 {
		set = append(set, "scopes "+strings.Join(e.Scopes, " "))
	}
	if e.OAuth.Resource != "" {
		set = append(set, "resource "+e.OAuth.Resource)
	}
	o := e.Options
	if o.ResourceOff {
		set = append(set, "resource off")
	}
	if o.AuthMethod != "" {
		set = append(set, "token_endpoint_auth_method "+o.AuthMethod)
	}
	if o.RefreshScope {
		set = append(set, "refresh_scope on")
	}
	if len(o.AuthorizationParams) > 0 {
		line := "authorization_params"
		for _, name := range slices.Sorted(maps.Keys(o.AuthorizationParams)) {
			line += fmt.Sprintf(" %s=%s", name, o.AuthorizationParams[name])
		}
		set = append(set, line)
	}
	slices.Sort(set)
	return set
}

// TestCatalogueIsDocumented checks that docs/providers.md has a row for each entry with the entry's settings, and
// that both name the documentation that they come from and the date of reading it.
func TestCatalogueIsDocumented(t *testing.T) {
	entries, err := Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	rows := documentedEntries(t)
	read := make(map[string]bool) // by provider
	for _, e := range entries {
		row, ok := rows[e.Slug]
		if !ok {
			t.Errorf("%s has no row", e.Slug)
			continue
		}
		delete(rows, e.Slug)
		if diff := cmp.Diff(row.Settings, settings(e)); diff != "" {
			t.Errorf("%s (-documented +entry)\n%s", e.Slug, diff)
		}
		if e.Meta == nil {
			if row.Source != "" || row.Read != never {
				t.Errorf("%s: read on %s in the docs, and does not say so itself", e.Slug, row.Read)
			}
			continue
		}
		var meta map[string]string
		if err := json.Unmarshal(e.Meta, &meta); err != nil {
			t.Fatalf("%s: %v", e.Slug, err)
		}
		if diff := cmp.Diff(map[string]string{"source": row.Source, "checked": row.Read}, meta); diff != "" {
			t.Errorf("%s (-documented +entry)\n%s", e.Slug, diff)
		}
		if _, err := time.Parse(time.DateOnly, meta["checked"]); err != nil {
			t.Errorf("%s: %v", e.Slug, err)
		}
		if u, err := url.Parse(meta["source"]); err != nil || u.Scheme != "https" || u.Host == "" {
			t.Errorf("%s: source %q", e.Slug, meta["source"])
		}
		read[row.Provider] = true
	}
	for slug := range rows {
		t.Errorf("there is no entry %q", slug)
	}
	for _, provider := range []string{"Atlassian", "GitHub", "Google", "HubSpot", "Linear", "Microsoft", "Notion", "Slack"} {
		if !read[provider] {
			t.Errorf("%s: nothing was read", provider)
		}
	}
}

// TestCatalogueSourcesAreTheProviders checks that an entry comes from its provider's own documentation: another
// company's page is no substitute. That documentation is at a host of the entry's own domain, or at one of these.
func TestCatalogueSourcesAreTheProviders(t *testing.T) {
	elsewhere := map[string]string{
		"atlassian": "github.com/atlassian/", "canva": "www.canva.dev/", "cloudflare-documentation": "github.com/cloudflare/",
		"cloudflare-observability": "github.com/cloudflare/", "deepwiki": "docs.devin.ai/", "github": "github.com/github/",
		"github-token": "github.com/github/", "google-bigquery": "docs.cloud.google.com/", "hugging-face": "github.com/huggingface/",
		"microsoft-enterprise": "github.com/microsoft/", "neon": "github.com/neondatabase/", "slack": "docs.slack.dev/", "stripe": "github.com/stripe/",
	}
	entries, err := Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	domain := func(address string) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		labels := strings.Split(u.Hostname(), ".")
		return strings.Join(labels[max(len(labels)-2, 0):], ".")
	}
	for _, e := range entries {
		if e.Meta == nil {
			continue
		}
		var meta struct {
			Source string `json:"source"`
		}
		if err := json.Unmarshal(e.Meta, &meta); err != nil {
			t.Fatalf("%s: %v", e.Slug, err)
		}
		own, ok := elsewhere[e.Slug]
		if ok && !strings.HasPrefix(meta.Source, "https://"+own) || !ok && domain(meta.Source) != domain(e.URL) {
			t.Errorf("%s: %s is not the provider's own", e.Slug, meta.Source)
		}
	}
}
