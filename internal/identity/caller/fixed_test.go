package caller

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// TestFixedOrganizationOfSlug covers W20: claims that name the configured organization, none, or another one.
func TestFixedOrganizationOfSlug(t *testing.T) {
	acme := storage.OrganizationClaim{Issuer: issuer, Slug: "acme", DerivedID: OrganizationID(issuer, "acme")}
	null := json.RawMessage("null")
	for name, c := range map[string]struct {
		claims m
		paths  Paths
		taken  bool
	}{
		"no claim, as most providers send":     {nil, Paths{}, true},
		"null":                                 {m{"org_id": null, "organization": null, "org_slug": null}, Paths{}, true},
		"empty":                                {m{"org_id": "", "organization": []string{}, "organization_name": m{}}, Paths{}, true},
		"the slug":                             {m{"org_id": "acme"}, Paths{}, true},
		"the slug in upper case":               {m{"organization": "ACME"}, Paths{}, true},
		"Keycloak array":                       {m{"organization": []string{"acme"}}, Paths{}, true},
		"Keycloak object":                      {m{"organization": m{"acme": m{}}}, Paths{}, true},
		"the id that the slug stands for":      {m{"org_id": acme.DerivedID}, Paths{}, true},
		"beside a display name":                {m{"organization": "acme", "organization_name": "Acme Inc."}, Paths{}, true},
		"nested":                               {m{"user": m{"organization_slug": "acme"}}, Paths{}, true},
		"a claim that is not looked at":        {m{"tid": orgB, "org_name": "other"}, Paths{}, true},
		"paths that point elsewhere":           {m{"org_id": "other", "organization_name": "Other"}, Paths{Organization: []string{"none"}, OrganizationSlug: []string{"none"}}, true},
		"another slug":                         {m{"org_id": "other"}, Paths{}, false},
		"another slug in each default":         {m{"organization_id": "other"}, Paths{}, false},
		"another Keycloak organization":        {m{"organization": m{"other": m{}}}, Paths{}, false},
		"several, ours among them":             {m{"organization": []string{"acme", "other"}}, Paths{}, false},
		"several as an object":                 {m{"organization": m{"acme": m{}, "other": m{}}}, Paths{}, false},
		"another id":                           {m{"org_id": orgA}, Paths{}, false},
		"ours by slug, another by id":          {m{"organization": m{"acme": m{"id": orgB}}}, Paths{}, false},
		"another id, our slug chosen by them":  {m{"org_id": orgB, "organization_slug": "acme"}, Paths{}, false},
		"ours first, another later":            {m{"org_id": "acme", "organization": "other"}, Paths{}, false},
		"null first, another later":            {m{"org_id": null, "organization": "other"}, Paths{}, false},
		"ours, and another slug":               {m{"org_id": "acme", "org_slug": "other"}, Paths{}, false},
		"another slug, nested":                 {m{"user": m{"organization_name": "other"}}, Paths{}, false},
		"a display name alone":                 {m{"organization_name": "Acme Inc."}, Paths{}, false},
		"Auth0's id":                           {m{"org_id": "org_eB1aHm7Wd3NUWx4Z"}, Paths{}, false},
		"a number":                             {m{"org_id": 7}, Paths{}, false},
		"a boolean":                            {m{"organization": false}, Paths{}, false},
		"joined":                               {m{"org_id": "acme,other"}, Paths{}, false},
		"a letter that folds to ours (U+212A)": {m{"org_id": "a\u212a"}, Paths{}, false},
		"a path of the operator's":             {m{"tid": orgB}, Paths{Organization: []string{"tid"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			changes := m{"org_id": nil}
			for k, v := range c.claims {
				changes[k] = v
			}
			got, err := Map(verified(t, payload(changes)), Mapping{Paths: c.paths, Organization: "acme"})
			if !c.taken {
				if !errors.Is(err, ErrOtherOrganization) || !errors.Is(err, ErrForbidden) {
					t.Fatalf("error %v, %+v", err, got.Organization)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(acme, got.Organization); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFixedOrganizationOfID(t *testing.T) {
	for name, c := range map[string]struct {
		claims m
		taken  bool
	}{
		"no claim":                     {m{}, true},
		"the id":                       {m{"org_id": orgA}, true},
		"the id and a slug":            {m{"org_id": orgA, "organization_slug": "acme"}, true},
		"the id and a display name":    {m{"org_id": orgA, "organization_name": "Acme Inc."}, true},
		"Keycloak object with the id":  {m{"organization": m{"acme": m{"id": orgA}}}, true},
		"another id":                   {m{"org_id": orgB}, false},
		"a slug":                       {m{"org_id": "acme"}, false},
		"a slug, of which nobody says": {m{"organization_slug": "acme"}, false},
		"a display name alone":         {m{"organization_name": "Acme Inc."}, false},
	} {
		t.Run(name, func(t *testing.T) {
			changes := m{"org_id": nil}
			for k, v := range c.claims {
				changes[k] = v
			}
			got, err := Map(verified(t, payload(changes)), Mapping{Organization: orgA, SharedOrganizations: []string{orgA}})
			if c.taken != (err == nil) || err != nil && !errors.Is(err, ErrOtherOrganization) {
				t.Fatal(err)
			}
			if err == nil && (got.Organization.ID != orgA || !got.Organization.Shared) {
				t.Errorf("%+v", got.Organization)
			}
		})
	}
}

func TestFixedOrganization(t *testing.T) {
	for text, want := range map[string]string{
		"acme": "acme", "Acme-1": "acme-1", "0190A1B2-0000-7000-8000-00000000000A": orgA,
		"": "", "Acme Inc.": "", "-acme": "", "a_b": "", "{0190a1b2-0000-7000-8000-00000000000a}": "", "00000000-0000-0000-0000-000000000000": "",
	} {
		if got, ok := FixedOrganization(text); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
}
