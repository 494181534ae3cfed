package issuers

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/storage"
)

type named struct {
	authn.Issuer
	name  string
	rules caller.Rules
}

func (n named) IssuerID() string    { return n.name }
func (n named) Rules() caller.Rules { return n.rules }

// TestOf checks that an organization is told of the issuers alone whose tokens can name it.
func TestOf(t *testing.T) {
	const shared = "0190aaaa-0000-7000-8000-000000000001"
	var all Issuers
	for name, mapping := range map[string]caller.Mapping{
		"https://open.example": {}, "https://acme.example": {Organization: "acme"}, "https://partner.example": {SharedOrganizations: []string{shared}},
		"https://fixed.example": {Organization: shared, SharedOrganizations: []string{shared}}, "https://elsewhere.example": {Organization: "elsewhere", SharedOrganizations: []string{shared}},
	} {
		if err := all.Add(named{name: name, rules: caller.Rules{Mapping: mapping}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		of   storage.Organization
		want []string
	}{
		"named by its tokens":   {storage.Organization{ID: "1", Issuer: "https://open.example"}, []string{"https://open.example"}},
		"the one of an issuer":  {storage.Organization{ID: caller.OrganizationID("https://acme.example", "acme"), Issuer: "https://acme.example"}, []string{"https://acme.example"}},
		"a former one there":    {storage.Organization{ID: "1", Issuer: "https://acme.example"}, nil},
		"the slug of another":   {storage.Organization{ID: caller.OrganizationID("https://open.example", "acme"), Issuer: "https://open.example"}, []string{"https://open.example"}},
		"shared by two":         {storage.Organization{ID: shared, Issuer: "https://open.example"}, []string{"https://open.example", "https://partner.example", "https://fixed.example"}},
		"of an issuer long ago": {storage.Organization{ID: "1", Issuer: "https://gone.example"}, nil},
	} {
		got, want := make(map[string]bool), make(map[string]bool)
		for _, issuer := range all.Of(test.of) {
			got[issuer] = true
		}
		for _, issuer := range test.want {
			want[issuer] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
