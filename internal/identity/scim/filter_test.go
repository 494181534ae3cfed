package scim

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wantType checks that an error is a refusal of a type.
func wantType(t *testing.T, err error, want string) {
	t.Helper()
	if refused, ok := errors.AsType[*Error](err); !ok || refused.Type != want || refused.Status != 400 || refused.Detail == "" {
		t.Errorf("got %v, want a refusal of type %s", err, want)
	}
}

// TestFilters reads the filters that Okta and Entra ID send.
func TestFilters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Filter{
		"":                                 {},
		`userName eq "ada@example.com"`:    {Name: "ada@example.com"},
		`USERNAME Eq "Ada"`:                {Name: "Ada"},
		` userName  eq  "a" `:              {Name: "a"},
		`userName eq "a\"b\u00e9 and [\\"`: {Name: `a"bé and [\`},
		`externalId eq "jyoung"`:           {ExternalID: "jyoung"},
		`id eq "1" and externalId eq "2"`:  {ID: "1", ExternalID: "2"},
		`urn:ietf:params:scim:schemas:core:2.0:User:userName eq "a"`: {Name: "a"},
		`emails[type eq "work"].value eq "a@b"`:                      {Email: EmailFilter{"a@b", "work"}},
		`emails[type eq "work" and value eq "a@b"]`:                  {Email: EmailFilter{"a@b", "work"}},
		`emails.value eq "a@b"`:                                      {Email: EmailFilter{"a@b", ""}},
		`emails eq "a@b"`:                                            {Email: EmailFilter{"a@b", ""}},
		`active eq true`:                                             {Active: new(true)},
		`active eq "False"`:                                          {Active: new(false)},
		`active eq true and active eq false`:                         {Active: new(false), Nothing: true},
		`userName eq "a" and userName eq "b"`:                        {Name: "b", Nothing: true},
		`userName eq "a" and userName eq "a"`:                        {Name: "a"},
		`userName eq ""`:                                             {Nothing: true},
	} {
		if got, err := UserFilter(text); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v\n%s", text, err, cmp.Diff(want, got))
		}
	}
	for text, want := range map[string]Filter{
		`displayName eq "Staff"`:              {Name: "Staff"},
		`members eq "1"`:                      {Member: "1"},
		`members.value eq "1"`:                {Member: "1"},
		`members[value eq "1"]`:               {Member: "1"},
		`id eq "1" and members eq "2"`:        {ID: "1", Member: "2"},
		`externalId eq "x" AND id eq "1"`:     {ExternalID: "x", ID: "1"},
		`displayName eq "a" and id eq ""`:     {Name: "a", Nothing: true},
		`members[value eq "1"] and id eq "2"`: {Member: "1", ID: "2"},
	} {
		if got, err := GroupFilter(text); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v\n%s", text, err, cmp.Diff(want, got))
		}
	}
}

// TestRefusedFilters checks that a filter that is not understood is refused: it must not find everything.
func TestRefusedFilters(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`userName`, `userName eq`, `userName eq a`, `userName eq "a`, `userName eq "a" and`, `userName eq "a" userName eq "a"`, `userName eq "a" or id eq "1"`,
		`userName sw "a"`, `userName pr`, `userName ne "a"`, `not (userName eq "a")`, `(userName eq "a")`, `title eq "a"`, `displayName eq "a"`, `id.part eq "1"`,
		`emails[type eq "work"]`, `emails[type eq "work"].value`, `emails[type eq "work"].display eq "a"`, `emails[type eq "work" or value eq "a"]`, `emails[].value eq "a"`,
		`emails[value eq "a"`, `emails[value eq "a"]. eq "b"`, `emails.value[type eq "a"] eq "b"`, `active eq "yes"`, `active eq 1`, `active.x eq true`, `meta.lastModified gt "2026"`, `=`, `"`, `[`, "userName eq \"\xff\"",
		`userName eq "` + strings.Repeat("a", maxExpression) + `"`,
	} {
		_, err := UserFilter(text)
		wantType(t, err, TypeInvalidFilter)
	}
	for _, text := range []string{`userName eq "a"`, `members[display eq "a"]`, `displayName co "a"`} {
		_, err := GroupFilter(text)
		wantType(t, err, TypeInvalidFilter)
	}
}

// FuzzFilter checks that whatever is sent is read or refused, and that what is understood narrows.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{`userName eq "a"`, `emails[type eq "work"].value eq "a@b"`, `id eq "1" and members eq "2"`, `active eq true`, `members[value eq "x"]`, `urn:x:y eq "\u0000"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func(string) (Filter, error){UserFilter, GroupFilter} {
			got, err := read(text)
			if err != nil {
				wantType(t, err, TypeInvalidFilter)
			} else if strings.TrimSpace(text) != "" && cmp.Equal(got, Filter{}) {
				t.Errorf("%q selects everything", text)
			}
		}
		if _, err := readPath(text); err != nil {
			wantType(t, err, TypeInvalidPath)
		}
	})
}
