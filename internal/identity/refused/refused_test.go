package refused

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/storage"
)

const issuer = "https://id.example.com"

func parsed(t testing.TB, header, payload string) *token.Unverified {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	u, err := token.Parse(b64([]byte(header)) + "." + b64([]byte(payload)) + "." + b64([]byte("signature-of-the-test")))
	if err != nil {
		t.Fatal(token.Reason(err))
	}
	return &u
}

func invalid(reason string) error { return &token.Error{Kind: token.ErrInvalid, Reason: reason} }

// TestAdvice checks W26: which option refused a token and which line would accept it.
func TestAdvice(t *testing.T) {
	of := &Identity{Options: token.Options{Issuer: issuer, Audiences: []string{"https://gate.example.com"}}, Mapping: caller.Mapping{Organization: "acme"}}
	for name, c := range map[string]struct {
		payload, header string
		err             error
		of              *Identity
		refused, accept string
	}{
		"another audience":         {`{"aud":["api://default","x"]}`, "", invalid("aud does not name the gateway"), of, "identity oidc https://id.example.com: audience https://gate.example.com", "audience api://default"},
		"another server's address": {`{"aud":"https://gate.example.com/mcp/other"}`, "", invalid("aud does not name the gateway"), of, "identity oidc https://id.example.com: audience https://gate.example.com", ""},
		"an audience of two lines": {`{"aud":"x\n\t}\n\tidentity oidc https://evil"}`, "", invalid("aud does not name the gateway"), of, "identity oidc https://id.example.com: audience https://gate.example.com", ""},
		"another organization":     {`{"organization":["beta"]}`, "", fmt.Errorf("%w: x", caller.ErrOtherOrganization), of, "identity oidc https://id.example.com: organization acme", "organization beta"},
		"Auth0's organization":     {`{"org_id":"org_abc"}`, "", caller.ErrOtherOrganization, of, "identity oidc https://id.example.com: organization acme", ""},
		"no organization":          {`{}`, "", caller.ErrForbidden, of, "identity oidc https://id.example.com: claim org", "organization acme"},
		"a foreign organization":   {`{"org_id":"0190a1b2-0000-7000-8000-00000000000a"}`, "", storage.ErrForeignOrganization, of, "identity oidc https://id.example.com: shared_organizations", "shared_organizations 0190a1b2-0000-7000-8000-00000000000a"},
		"another algorithm":        {`{}`, `{"alg":"ES512"}`, invalid("the algorithm is not accepted"), of, "identity oidc https://id.example.com: algorithms", "algorithms RS256 PS256 ES256 ES384 EdDSA ES512"},
		"none":                     {`{}`, `{"alg":"none"}`, invalid("the algorithm is not accepted"), of, "identity oidc https://id.example.com: algorithms", ""},
		"a long life":              {`{"iat":1700000000,"exp":1700172800.5}`, "", invalid("the token lives too long"), of, "identity oidc https://id.example.com: max_lifetime", "max_lifetime 49h"},
		"a life beyond reason":     {`{"iat":0,"exp":99999999999}`, "", invalid("the token lives too long"), of, "identity oidc https://id.example.com: max_lifetime", ""},
		"an unknown issuer":        {`{"iss":"https://other.example.com"}`, "", invalid("iss is not that of a configured identity"), nil, "identity oidc", "identity oidc https://other.example.com"},
		"a slash":                  {`{"iss":"https://id.example.com/"}`, "", invalid("iss is not that of a configured identity"), nil, "identity oidc https://id.example.com", "identity oidc https://id.example.com/"},
		"expired":                  {`{}`, "", invalid("the token has expired"), of, "", ""},
		"an ID token":              {`{}`, "", invalid("the token has at_hash, which access tokens do not"), of, "", ""},
		"a forged signature":       {`{}`, "", invalid("verifying the signature"), of, "", ""},
		"no key":                   {`{}`, "", invalid("no key of that kid and algorithm"), of, "", ""},
		"no type":                  {`{}`, "", invalid("typ is not at+jwt"), of, "identity oidc https://id.example.com: require_typ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			header := c.header
			if header == "" {
				header = `{"alg":"RS256"}`
			}
			e := Describe(Refusal{Token: parsed(t, header, c.payload), Err: c.err, Path: "/mcp/x", Status: 401, Issuers: []string{issuer}, Of: c.of})
			if e.RefusedBy != c.refused || e.AcceptedBy != c.accept || e.Advice.Advice == "" || e.Reason == "" {
				t.Errorf("%+v", e.Advice)
			}
			encoded, err := json.Marshal(e)
			if err != nil || strings.Contains(string(encoded), base64.RawURLEncoding.EncodeToString([]byte("signature-of-the-test"))) || strings.Contains(string(encoded), "signature-of-the-test") {
				t.Errorf("%v: the signature is in %s", err, encoded)
			}
		})
	}
	e := Describe(Refusal{Err: invalid("not three parts"), Path: "/mcp/x", Status: 401})
	if string(e.Claims) != "{}" || !strings.Contains(e.Advice.Advice, "no JWT") {
		t.Errorf("opaque: %+v", e)
	}
	e = Describe(Refusal{Err: invalid("not three parts"), Path: "/" + strings.Repeat("é", maxText)})
	if len(e.Path) != maxText-1 || !strings.HasSuffix(e.Path, "é") {
		t.Errorf("a path is cut inside a character: %q", e.Path)
	}
}

// TestClaimsAreBounded checks that a sender's text is cut, and that values that could be misused are not kept.
func TestClaimsAreBounded(t *testing.T) {
	long := strings.Repeat("a", maxClaim)
	var many strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, `"claim-%d":"%s",`, i, strings.Repeat("b", 30))
	}
	e := Describe(Refusal{Token: parsed(t, `{"alg":"RS256","kid":"`+strings.Repeat("k", 300)+`"}`, `{`+many.String()+`"long":"`+long+`"}`), Err: invalid("x")})
	if len(e.Claims) > maxClaims+1 || !json.Valid(e.Claims) || len(e.Cut) != maxCut || e.Header["kid"] != "" {
		t.Errorf("%d bytes, %d left out, header %v", len(e.Claims), len(e.Cut), e.Header)
	}
	e = Describe(Refusal{Token: parsed(t, `{"alg":"RS256"}`, `{"upstream_Token":"s3cret","act":{"x":[{"client_secret":"s3cret"}]},"sub":"alice","token_use":"id","long":"`+long+`","\u202ename":"x"}`), Err: invalid("x")})
	if text := string(e.Claims); strings.Contains(text, "s3cret") || !strings.Contains(text, `"sub":"alice"`) || !strings.Contains(text, `"token_use":"id"`) || strings.Contains(text, "\u202e") || len(e.Cut) != 1 || e.Cut[0] != "long" {
		t.Errorf("%s, left out %v", e.Claims, e.Cut)
	}
}

// TestBook checks that the last hundred of an hour are kept, and that no address pushes out the entries of others.
func TestBook(t *testing.T) {
	var b Book
	now := time.Unix(1_700_000_000, 0)
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	victim := address(9999)
	b.Add(Entry{At: now, From: victim, Path: "victim"})
	for i := range 500 { // one address sends as much as it likes
		b.Add(Entry{At: now, From: address(1), Status: i})
	}
	if entries := b.Entries(now); len(entries) != 1+maxPerAddress || entries[0].Status != 499 || entries[len(entries)-1].Path != "victim" {
		t.Errorf("%d entries: %+v", len(entries), entries)
	}
	for i := range 300 {
		b.Add(Entry{At: now.Add(time.Second), From: address(i)})
	}
	if entries := b.Entries(now); len(entries) != maxEntries {
		t.Errorf("%d entries", len(entries))
	}
	if entries := b.Entries(now.Add(Kept + time.Second)); len(entries) != 0 {
		t.Errorf("%d entries after an hour", len(entries))
	}
}

func TestRoom(t *testing.T) {
	var b Book
	now := time.Unix(1_700_000_000, 0)
	one, other := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	count := func(from netip.Addr, at time.Time) (n int) {
		for range 50 {
			if b.Room(from, at) {
				n++
			}
		}
		return n
	}
	if n := count(one, now); n != perMinute {
		t.Errorf("%d from one address", n)
	}
	if n := count(other, now); n != perMinute {
		t.Errorf("%d from another", n)
	}
	if n := count(one, now.Add(time.Minute)); n != perMinute {
		t.Errorf("%d a minute later", n)
	}
	for i := range 100 {
		count(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}), now.Add(time.Minute))
	}
	if b.Room(other, now.Add(time.Minute)) {
		t.Error("there is no bound for all addresses together")
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add(`{"alg":"RS256"}`, `{"iss":"https://id.example.com","aud":["x"],"org_id":"acme"}`, "aud does not name the gateway")
	f.Add(`{"alg":"none"}`, `{"exp":1e11,"iat":0.5,"organization":{"a":{"id":"x"}}}`, "the token lives too long")
	f.Fuzz(func(t *testing.T, header, payload, reason string) {
		b64 := base64.RawURLEncoding.EncodeToString
		u, err := token.Parse(b64([]byte(header)) + "." + b64([]byte(payload)) + ".AA")
		if err != nil {
			return
		}
		for _, cause := range []error{invalid(reason), caller.ErrForbidden, caller.ErrOtherOrganization, errors.New(reason)} {
			for _, of := range []*Identity{nil, {Options: token.Options{Issuer: issuer}}} {
				e := Describe(Refusal{Token: &u, Err: cause, Path: payload, Of: of, Issuers: []string{issuer}})
				if !json.Valid(e.Claims) || len(e.Claims) > maxClaims+1 || strings.ContainsAny(e.AcceptedBy, "\r\n\t{}\"`#") {
					t.Fatalf("%+v", e)
				}
			}
		}
	})
}
