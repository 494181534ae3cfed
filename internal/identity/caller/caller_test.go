package caller

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

const (
	issuer = "https://idp.example.com"
	orgA   = "0190a1b2-0000-7000-8000-00000000000a"
	orgB   = "0190a1b2-0000-7000-8000-00000000000b"
	userID = "0190a1b2-0000-7000-8000-000000000001"
)

// verified returns claims as token.Verifier would return them.
func verified(t testing.TB, payload string) *token.Claims {
	t.Helper()
	v, err := strictjson.Parse([]byte(payload), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	sub, _ := v.Get("sub")
	return &token.Claims{Vouched: token.Vouched{Issuer: issuer}, Subject: sub.Str(), Object: v}
}

// payload returns a usable payload with changes; a nil value removes a member.
func payload(changes map[string]any) string {
	members := map[string]any{"sub": "user-1", "org_id": orgA}
	maps.Copy(members, changes)
	maps.DeleteFunc(members, func(_ string, v any) bool { return v == nil })
	b, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(b)
}

type m = map[string]any

func TestMap(t *testing.T) {
	got, err := Map(verified(t, payload(m{
		"sub": userID, "azp": "dev-agent", "client_id": "dev-agent", "email": "alice@example.test", "name": "Alice",
		"organization_slug": "Acme", "roles": []string{"admin", "a b", "admin", ""}, "realm_access": m{"roles": []string{"Admin"}},
		"groups": []string{"/engineering/core", "//x", "sales", "/"}, "teams": []string{"t"}, "projects": []string{"p"},
	})), Mapping{SharedOrganizations: []string{orgA}})
	if err != nil {
		t.Fatal(err)
	}
	want := Identity{
		Issuer: issuer, Subject: userID,
		Organization: storage.OrganizationClaim{
			Issuer: issuer, ID: orgA, Slug: "acme", DerivedID: OrganizationID(issuer, "acme"), Shared: true,
		},
		Roles: []string{"admin", "a b", "Admin"}, Groups: []string{"engineering/core", "/x", "sales"},
		Teams: []string{"t"}, Projects: []string{"p"},
		AgentExternalID: "dev-agent", Name: "Alice", Email: "alice@example.test",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	user := storage.UserClaim{
		OrganizationID: orgA, Issuer: issuer, Subject: userID, ID: userID, DerivedID: UserID(issuer, userID),
		Kind: storage.UserPerson, Name: "Alice", Email: "alice@example.test",
	}
	if diff := cmp.Diff(user, got.UserClaim(orgA)); diff != "" {
		t.Error(diff)
	}
}

func TestOrganization(t *testing.T) {
	none := m{"org_id": nil}
	over := func(more m) m {
		out := maps.Clone(none)
		maps.Copy(out, more)
		return out
	}
	for name, c := range map[string]struct {
		claims   m
		paths    Paths
		id, slug string // both "" means 403
	}{
		"uuid":                                 {claims: m{}, id: orgA},
		"uuid in upper case":                   {claims: m{"org_id": "0190A1B2-0000-7000-8000-00000000000A"}, id: orgA},
		"organization_id":                      {claims: over(m{"organization_id": orgB}), id: orgB},
		"slug in org_id":                       {claims: m{"org_id": "ACME"}, slug: "acme"},
		"Keycloak string":                      {claims: over(m{"organization": "acme"}), slug: "acme"},
		"Keycloak array of one":                {claims: over(m{"organization": []string{"acme"}}), slug: "acme"},
		"Keycloak object with one key":         {claims: over(m{"organization": m{"acme": m{}}}), slug: "acme"},
		"Keycloak object with id":              {claims: over(m{"organization": m{"acme": m{"id": orgB}}}), id: orgB, slug: "acme"},
		"Keycloak object with a bad id":        {claims: over(m{"organization": m{"acme": m{"id": 7}}})},
		"array of one uuid":                    {claims: m{"org_id": []string{orgA}}, id: orgA},
		"organization_slug":                    {claims: over(m{"organization_slug": "Acme-1"}), slug: "acme-1"},
		"org_slug":                             {claims: over(m{"org_slug": "a"}), slug: "a"},
		"organization_name":                    {claims: over(m{"organization_name": "acme"}), slug: "acme"},
		"nested slug":                          {claims: over(m{"user": m{"organization_slug": "acme"}}), slug: "acme"},
		"nested name":                          {claims: over(m{"user": m{"organization_name": "acme"}}), slug: "acme"},
		"id and slug":                          {claims: m{"organization_slug": "acme"}, id: orgA, slug: "acme"},
		"id and a display name":                {claims: m{"organization_name": "Acme Inc."}, id: orgA},
		"id and a slug of another type":        {claims: m{"organization_slug": []string{"a", "b"}}, id: orgA},
		"namespaced by configuration":          {claims: m{"https://example.com/org": orgB}, paths: Paths{Organization: []string{"https://example.com/org"}}, id: orgB},
		"J21 configured path replaces":         {claims: m{}, paths: Paths{Organization: []string{"tenant"}}},
		"J21 absent":                           {claims: none},
		"J21 list of two":                      {claims: m{"org_id": []string{orgA, orgB}}},
		"J21 list of two slugs":                {claims: over(m{"organization": []string{"a", "b"}})},
		"J21 object of two":                    {claims: over(m{"organization": m{"a": m{}, "b": m{}}})},
		"J21 empty list":                       {claims: m{"org_id": []string{}}},
		"J21 empty object":                     {claims: m{"org_id": m{}}},
		"J21 empty string":                     {claims: m{"org_id": ""}},
		"J21 number":                           {claims: m{"org_id": 7}},
		"J21 boolean":                          {claims: m{"org_id": true}},
		"J21 list of a number":                 {claims: m{"org_id": []int{7}}},
		"J21 bad first, good second":           {claims: m{"org_id": []string{}, "organization_id": orgA}},
		"J21 null first, good second":          {claims: m{"org_id": json.RawMessage("null"), "organization_id": orgA}},
		"J21 second claim says another":        {claims: m{"organization_id": orgB}, id: orgA},
		"J21 bad id, good slug":                {claims: m{"org_id": "org_abc123", "organization_slug": "acme"}},
		"J21 other case of the claim's name":   {claims: over(m{"ORG_ID": orgA})},
		"J21 joined":                           {claims: m{"org_id": orgA + "," + orgB}},
		"nil uuid":                             {claims: m{"org_id": "00000000-0000-0000-0000-000000000000"}},
		"uuid with braces":                     {claims: m{"org_id": "{" + orgA + "}"}},
		"a slug claim never names an id":       {claims: over(m{"organization_slug": orgA})},
		"slug with a blank":                    {claims: over(m{"organization_slug": "acme inc"})},
		"slug with a hyphen in front":          {claims: over(m{"organization_slug": "-acme"})},
		"slug with a hyphen behind":            {claims: over(m{"organization_slug": "acme-"})},
		"slug with a line feed behind":         {claims: over(m{"organization_slug": "acme\n"})},
		"slug with a Kelvin sign":              {claims: over(m{"organization_slug": "\u212Ask"})},
		"slug that is too long":                {claims: over(m{"organization_slug": string(make([]byte, 300))})},
		"O09 organization beside the token":    {claims: over(m{"headers": m{"X-Org-Id": orgA}})},
		"slug of an object with several parts": {claims: over(m{"organization_slug": m{"acme": 1, "b": 2}})},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Map(verified(t, payload(c.claims)), Mapping{Paths: c.paths})
			if c.id == "" && c.slug == "" {
				if !errors.Is(err, ErrForbidden) || errors.Is(err, token.ErrInvalid) {
					t.Fatalf("want ErrForbidden, got %+v, %v", got.Organization, err)
				}
				if diff := cmp.Diff(Identity{}, got); diff != "" {
					t.Errorf("J32 an identity came with the error: %s", diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := storage.OrganizationClaim{Issuer: issuer, ID: c.id, Slug: c.slug}
			if c.slug != "" {
				want.DerivedID = OrganizationID(issuer, c.slug)
			}
			if diff := cmp.Diff(want, got.Organization); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRoles(t *testing.T) {
	for name, c := range map[string]struct {
		roles any
		want  []string
	}{
		"J20 array":            {[]string{"admin"}, []string{"admin"}},
		"J20 string":           {"admin", nil},
		"J20 object":           {m{"admin": true}, nil},
		"J20 joined by blanks": {"user admin", nil},
		"J20 joined in array":  {[]string{"user admin"}, []string{"user admin"}},
		"J20 other case":       {[]string{"Admin"}, []string{"Admin"}},
		"J20 with a number":    {[]any{"admin", 1}, nil},
		"J20 nested":           {[]any{[]string{"admin"}}, nil},
		"J20 slash stays":      {[]string{"/admin"}, []string{"/admin"}},
		"J20 blanks stay":      {[]string{" admin "}, []string{" admin "}},
		"J20 null":             {json.RawMessage("null"), nil},
		"J20 true":             {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Map(verified(t, payload(m{"roles": c.roles, "role": "admin", "ROLES": []string{"admin"}})), Mapping{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Roles, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, c := range map[string]struct {
		separator string
		roles     any
		want      []string
	}{
		"J20 string of one":             {",", "admin", []string{"admin"}},
		"J20 string of several":         {",", "user,admin,,user", []string{"user", "admin"}},
		"J20 another separator":         {",", "user admin", []string{"user admin"}},
		"J20 blanks":                    {" ", "user  admin", []string{"user", "admin"}},
		"J20 blanks around names":       {",", "user, sales ,a b", []string{"user", "sales", "a b"}}, // a rule that denies sales must match it
		"J20 empty":                     {",", "", nil},
		"J20 array's strings are whole": {",", []string{"user,admin"}, []string{"user,admin"}},
		"J20 array with a number still": {",", []any{"admin", 1}, nil},
		"J20 object still":              {",", m{"admin": true}, nil},
		"J20 number still":              {",", 1, nil},
	} {
		t.Run(name+", separator "+c.separator, func(t *testing.T) {
			got, err := Map(verified(t, payload(m{"roles": c.roles, "groups": "/a" + c.separator + "/b"})), Mapping{Separator: c.separator})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Roles, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"a", "b"}, got.Groups); diff != "" {
				t.Error(diff)
			}
		})
	}
	got, err := Map(verified(t, payload(m{"roles": []string{"admin"}, "https://example.com/roles": []string{"x"}})),
		Mapping{Paths: Paths{Roles: []string{"https://example.com/roles"}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x"}, got.Roles); diff != "" {
		t.Error("J20 only the configured path grants:", diff)
	}
}

func TestAgent(t *testing.T) {
	for name, c := range map[string]struct {
		claims  m
		want    string
		invalid bool
	}{
		"azp":                     {claims: m{"azp": "a", "cid": "c"}, want: "a"},
		"client_id":               {claims: m{"client_id": "b", "cid": "c"}, want: "b"},
		"cid":                     {claims: m{"cid": "c"}, want: "c"},
		"none":                    {claims: m{}},
		"azp and client_id agree": {claims: m{"azp": "a", "client_id": "a"}, want: "a"},
		"they differ":             {claims: m{"azp": "a", "client_id": "b"}, invalid: true},
		"they differ in case":     {claims: m{"azp": "a", "client_id": "A"}, invalid: true},
		"one is null":             {claims: m{"azp": "a", "client_id": json.RawMessage("null")}, invalid: true},
		"number":                  {claims: m{"azp": 1}, invalid: true},
		"array":                   {claims: m{"client_id": []string{"a"}}, invalid: true},
		"empty":                   {claims: m{"azp": ""}, invalid: true},
		"NUL":                     {claims: m{"azp": "a\x00"}, invalid: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Map(verified(t, payload(c.claims)), Mapping{})
			if c.invalid {
				if !errors.Is(err, token.ErrInvalid) || errors.Is(err, ErrForbidden) {
					t.Fatalf("want ErrInvalid, got %+v, %v", got, err)
				}
				return
			}
			if err != nil || got.AgentExternalID != c.want {
				t.Fatalf("got %q, %v, want %q", got.AgentExternalID, err, c.want)
			}
		})
	}
}

func TestSubject(t *testing.T) {
	upper := "0190A1B2-0000-7000-8000-000000000001"
	for name, c := range map[string]struct {
		claims      m
		paths       []string
		subject, id string // no subject: 401
	}{
		"uuid":                            {claims: m{"sub": userID}, subject: userID, id: userID},
		"J19 upper case is another user":  {claims: m{"sub": upper}, subject: upper},
		"J19 never trimmed":               {claims: m{"sub": " " + userID}, subject: " " + userID},
		"text":                            {claims: m{"sub": "auth0|1"}, subject: "auth0|1"},
		"nil uuid":                        {claims: m{"sub": uuid.Nil.String()}, subject: uuid.Nil.String()},
		"configured":                      {claims: m{"oid": userID}, paths: []string{"oid"}, subject: userID, id: userID},
		"configured and absent":           {claims: m{}, paths: []string{"oid"}},
		"J19 configured and a number":     {claims: m{"oid": 1}, paths: []string{"oid"}},
		"J19 configured and with NUL":     {claims: m{"oid": "admin\x00"}, paths: []string{"oid"}},
		"J19 configured, first wins":      {claims: m{"a": "", "b": "x"}, paths: []string{"a", "b"}},
		"J19 no row of another is folded": {claims: m{"sub": "{" + userID + "}"}, subject: "{" + userID + "}"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Map(verified(t, payload(c.claims)), Mapping{Paths: Paths{User: c.paths}})
			if c.subject == "" {
				if !errors.Is(err, token.ErrInvalid) {
					t.Fatalf("want ErrInvalid, got %+v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			u := got.UserClaim(orgA)
			if got.Subject != c.subject || u.Subject != c.subject || u.ID != c.id || u.DerivedID != UserID(issuer, c.subject) {
				t.Errorf("subject %q, claim %+v", got.Subject, u)
			}
		})
	}
}

func TestDerivedIDs(t *testing.T) {
	ids := map[string]string{
		UserID(issuer, "a"):                            "user",
		OrganizationID(issuer, "a"):                    "organization",
		UserID(issuer+"/", "a"):                        "another issuer",
		UserID(issuer, "A"):                            "another case",
		UserID("urn:durward:dev", "a"):                 "development",
		OrganizationID(issuer+"/", "a"):                "organization of another issuer",
		OrganizationID("https://idp.example", ".coma"): "shifted boundary",
	}
	if len(ids) != 7 {
		t.Errorf("derived ids collide: %v", ids)
	}
	for id := range ids {
		if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 5 || parsed.String() != id {
			t.Errorf("%q is not a canonical uuid5", id)
		}
	}
	// Stored records depend on these values.
	if got, want := UserID(issuer, "user-1"), "bd99440d-f1b7-5d26-8b21-7fbba6f936e6"; got != want {
		t.Errorf("user id %s, want %s", got, want)
	}
	if got, want := OrganizationID(issuer, "acme"), "3af65c00-53bc-50bf-b805-61edfcdddaed"; got != want {
		t.Errorf("organization id %s, want %s", got, want)
	}
}

func TestIssuerName(t *testing.T) {
	got, err := Map(verified(t, payload(m{"org_id": "acme"})), Mapping{Issuer: "urn:durward:dev"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Issuer != "urn:durward:dev" || got.Organization.Issuer != "urn:durward:dev" ||
		got.Organization.DerivedID != OrganizationID("urn:durward:dev", "acme") || got.UserClaim("").Issuer != "urn:durward:dev" {
		t.Errorf("%+v", got)
	}
}

func TestMachine(t *testing.T) {
	for name, c := range map[string]struct {
		claims m
		want   bool
	}{
		"development provider":            {m{"sub": "dev-service", "azp": "dev-service", "client_id": "dev-service"}, true},
		"Okta":                            {m{"sub": "0oa1", "cid": "0oa1"}, true},
		"Auth0":                           {m{"sub": "abc@clients", "azp": "abc", "gty": "client-credentials"}, true},
		"Auth0 without gty":               {m{"sub": "abc@clients", "azp": "abc"}, true},
		"FusionAuth":                      {m{"gty": []string{"client_credentials"}}, true},
		"grant_type":                      {m{"grant_type": "client_credentials"}, true},
		"Entra":                           {m{"idtyp": "app"}, true},
		"Keycloak":                        {m{"sub": userID, "azp": "My-Service", "preferred_username": "service-account-my-service"}, true},
		"person":                          {m{"azp": "dev-agent", "email": "alice@example.test"}, false},
		"person by Auth0":                 {m{"azp": "abc", "gty": "password"}, false},
		"person by FusionAuth":            {m{"gty": []string{"authorization_code"}}, false},
		"person by Entra":                 {m{"idtyp": "user"}, false},
		"person with a service's name":    {m{"azp": "dev-agent", "preferred_username": "service-account-other"}, false},
		"person at no client":             {m{"preferred_username": "service-account-"}, false},
		"person whose name ends the same": {m{"sub": "x@clients", "azp": "abc"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Map(verified(t, payload(c.claims)), Mapping{})
			if err != nil {
				t.Fatal(err)
			}
			kind := storage.UserPerson
			if c.want {
				kind = storage.UserMachine
			}
			if got.Machine != c.want || got.UserClaim("").Kind != kind {
				t.Errorf("machine %v, want %v", got.Machine, c.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	got, err := Map(verified(t, payload(m{"name": 7, "preferred_username": "alice", "email": string(make([]byte, 300))})), Mapping{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "alice" || got.Email != "" {
		t.Errorf("name %q, email %q", got.Name, got.Email)
	}
}

// TestFromToken reads an identity from a signed token.
func TestFromToken(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := token.NewStaticKeys(token.StaticKey{ID: "k", Public: public})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	v, err := token.NewVerifier(token.Options{Issuer: issuer, Audiences: []string{"gw"}}, keys, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	signed := b64([]byte(`{"alg":"EdDSA","kid":"k"}`)) + "." + b64([]byte(payload(m{
		"iss": issuer, "aud": "gw", "exp": now.Unix() + 60, "iat": now.Unix(), "roles": []string{"admin"},
	})))
	c, err := v.Verify(context.Background(), signed+"."+b64(ed25519.Sign(private, []byte(signed))), "")
	if err != nil {
		t.Fatal(token.Reason(err))
	}
	i, err := Map(c, Mapping{})
	if err != nil {
		t.Fatal(err)
	}
	if !(RoleNames{Admin: "admin"}).Powers(i.Roles).Admin || i.Organization.ID != orgA {
		t.Errorf("%+v", i)
	}
}

func FuzzMap(f *testing.F) {
	f.Add(payload(m{"groups": []string{"/a"}, "organization": m{"acme": m{"id": orgB}}}))
	f.Add(payload(m{"org_id": []string{"a", "b"}}))
	f.Add(`{"sub":"x","user":{"organization_slug":"Acme"},"gty":["client_credentials"]}`)
	f.Add(`{"sub":"x","organization":{"a":null}}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := strictjson.Parse([]byte(text), strictjson.Limits{})
		if err != nil {
			return
		}
		i, err := Map(&token.Claims{Vouched: token.Vouched{Issuer: issuer}, Object: v}, Mapping{})
		if err != nil {
			if diff := cmp.Diff(Identity{}, i); diff != "" {
				t.Fatalf("J32 an identity came with an error: %s", diff)
			}
			if errors.Is(err, ErrForbidden) == errors.Is(err, token.ErrInvalid) {
				t.Fatalf("error %v is of no class or of two", err)
			}
			return
		}
		o := i.Organization
		if i.Subject == "" || i.Issuer != issuer || o.ID == "" && o.Slug == "" || (o.Slug == "") != (o.DerivedID == "") {
			t.Fatalf("identity %+v", i)
		}
	})
}

func BenchmarkMap(b *testing.B) {
	c := verified(b, payload(m{"azp": "a", "client_id": "a", "email": "a@b", "name": "A", "roles": []string{"admin"}, "groups": []string{"/x"}}))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Map(c, Mapping{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNamedLists covers K09: a missing list differs from an empty one.
func TestNamedLists(t *testing.T) {
	for name, c := range map[string]struct {
		roles any
		named bool
	}{"absent": {nil, false}, "empty": {[]string{}, true}, "one": {[]string{"r"}, true}, "an object": {m{"r": 1}, false}, "a number among them": {[]any{"r", 1}, false}} {
		got, err := Map(verified(t, payload(m{"roles": c.roles})), Mapping{})
		if err != nil {
			t.Fatal(err)
		}
		if (got.Roles != nil) != c.named {
			t.Errorf("%s: %#v", name, got.Roles)
		}
	}
}
