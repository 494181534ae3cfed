package caller

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// TestFactsHoldEveryPath checks all lists of paths: with one that AppendFacts forgot, one caller would be taken for
// another.
func TestFactsHoldEveryPath(t *testing.T) {
	kinds := reflect.TypeFor[Paths]()
	if known := reflect.TypeOf(new(Paths).lists()).Len(); kinds.NumField() != known {
		t.Fatalf("%d lists of paths, AppendFacts knows %d", kinds.NumField(), known)
	}
	for n := range kinds.NumField() {
		for _, path := range reflect.ValueOf(defaults).Field(n).Interface().([]string) {
			for end := len(path); end >= 0; end = strings.LastIndexByte(path[:end], '.') {
				if !new(Paths).reads(path[:end]) {
					t.Errorf("the default path %q: %q is not read", path, path[:end])
				}
			}
		}
		var own Paths
		reflect.ValueOf(&own).Elem().Field(n).Set(reflect.ValueOf([]string{"other", "https://example.com/claims.mine.deep"}))
		for _, name := range []string{"other", "https://example.com/claims.mine.deep", "https://example.com/claims.mine", "https://example.com/claims"} {
			if !own.reads(name) {
				t.Errorf("%s: %q is not read", kinds.Field(n).Name, name)
			}
		}
		for _, name := range []string{"exp", "iat", "nbf", "jti", "sid", "oth", "others", "https://example.com/claim", ""} {
			if own.reads(name) {
				t.Errorf("%s: %q is read", kinds.Field(n).Name, name)
			}
		}
	}
}

func TestFacts(t *testing.T) {
	facts := func(m Mapping, changes map[string]any) string {
		return string(m.AppendFacts(nil, verified(t, payload(changes))))
	}
	plain := facts(Mapping{}, m{"exp": 1, "iat": 2, "jti": "a", "sid": "b", "roles": []string{"admin"}})
	if again := facts(Mapping{}, m{"exp": 3, "iat": 4, "jti": "c", "nonce": "d", "roles": []string{"admin"}}); again != plain {
		t.Errorf("another token of the same person has other facts: %q, %q", plain, again)
	}
	for name, changes := range map[string]m{
		"role": {"roles": []string{"reader"}}, "no role": {}, "subject": {"roles": []string{"admin"}, "sub": "user-2"},
		"organization": {"roles": []string{"admin"}, "org_id": orgB}, "machine": {"roles": []string{"admin"}, "gty": "client-credentials"},
	} {
		if facts(Mapping{}, changes) == plain {
			t.Errorf("%s: the same facts", name)
		}
	}
	byID := Mapping{Paths: Paths{User: []string{"jti"}}}
	if facts(byID, m{"jti": "a"}) == facts(byID, m{"jti": "b"}) {
		t.Error("a claim that the operator chose is not among the facts")
	}
}

// FuzzFacts removes everything from a token that is not among its facts: the result of Map must stay the same.
func FuzzFacts(f *testing.F) {
	f.Add(payload(nil), "sub", "org_id")
	f.Add(payload(m{"exp": 1, "jti": "x", "user": m{"organization_slug": "acme"}, "org_id": nil}), "https://a.b/c.d", "a.b.c")
	f.Add(`{"sub":"a","realm_access":{"roles":["x"]},"realm_access.roles":["y"],"\u006frg_id":"acme","x.y":{"z":["r"]}}`, "x.y.z", "x")
	f.Add(`{"sub":"c","azp":"c","client_id":"c","idtyp":"app","organization":{"acme":{"id":"0190a1b2-0000-7000-8000-00000000000a"}}}`, "", ".")
	f.Fuzz(func(t *testing.T, text, user, roles string) {
		whole, err := strictjson.Parse([]byte(text), strictjson.Limits{})
		if err != nil || whole.Kind() != strictjson.Object {
			return
		}
		for _, rules := range []Mapping{{}, {Organization: "acme"}, {Paths: Paths{User: []string{user}, Roles: []string{roles}}}} {
			var kept []string
			for name, value := range whole.EachMember() {
				if rules.Paths.reads(string(name)) {
					quoted, err := json.Marshal(string(name))
					if err != nil {
						t.Fatal(err)
					}
					kept = append(kept, string(quoted)+":"+string(value.Raw()))
				}
			}
			part, err := strictjson.Parse([]byte("{"+strings.Join(kept, ",")+"}"), strictjson.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			of, ofPart := &token.Claims{Vouched: token.Vouched{Issuer: issuer}, Object: whole}, &token.Claims{Vouched: token.Vouched{Issuer: issuer}, Object: part}
			if diff := cmp.Diff(rules.AppendFacts(nil, of), rules.AppendFacts(nil, ofPart)); diff != "" {
				t.Fatal(diff)
			}
			want, wantErr := Map(of, rules)
			got, gotErr := Map(ofPart, rules)
			if diff := cmp.Diff(want, got); diff != "" || (wantErr == nil) != (gotErr == nil) || errors.Is(wantErr, ErrForbidden) != errors.Is(gotErr, ErrForbidden) {
				t.Fatalf("%q: %s, %v and %v", text, diff, wantErr, gotErr)
			}
		}
	})
}
