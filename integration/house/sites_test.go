package house

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	caddyfileBlock = regexp.MustCompile("(?ms)^```caddyfile Caddyfile\n(.*?)^```")
	loopbackSite   = regexp.MustCompile(`(?ms)^https?://(?:127\.0\.0\.1|localhost)[^\n]*\{\n(.*?)^\}`)
)

// TestLocalSitesBind: a guide's site for this machine listens on this machine alone. Its address says for which host it is, and
// Caddy listens on every address for it.
func TestLocalSitesBind(t *testing.T) {
	pages, err := filepath.Glob("../../docs/identity/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		for _, block := range caddyfileBlock.FindAllStringSubmatch(read(t, page), -1) {
			for _, site := range loopbackSite.FindAllStringSubmatch(block[1], -1) {
				found++
				if !strings.Contains(site[1], "\tbind 127.0.0.1\n") {
					t.Errorf("%s: the site %q listens on every address", page, site[0])
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("found %d sites only: how they are written has changed", found)
	}
}
