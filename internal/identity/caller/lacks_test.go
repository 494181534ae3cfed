package caller

import "testing"

func TestLacks(t *testing.T) {
	whole := m{"name": "Alice", "email": "alice@example.test", "roles": []string{}, "groups": []string{}}
	without := func(names ...string) m {
		out := m{}
		for k, v := range whole {
			out[k] = v
		}
		for _, name := range names {
			out[name] = nil
		}
		return out
	}
	for name, c := range map[string]struct {
		claims  m
		mapping Mapping
		want    Lack
	}{
		"nothing":                            {whole, Mapping{}, LacksNothing},
		"no organization":                    {without("org_id"), Mapping{}, LacksIdentity},
		"no organization, fixed":             {without("org_id"), Mapping{Organization: "acme"}, LacksNothing},
		"a slug alone":                       {m{"org_id": nil, "org_slug": "acme", "name": "A", "email": "a", "roles": []string{}, "groups": []string{}}, Mapping{}, LacksNothing},
		"an organization that is no good":    {m{"org_id": 7, "name": "A", "email": "a", "roles": []string{}, "groups": []string{}}, Mapping{}, LacksNothing},
		"the operator's path for the user":   {whole, Mapping{Paths: Paths{User: []string{"uid"}}}, LacksIdentity},
		"no address":                         {without("email"), Mapping{}, LacksDetail},
		"no roles":                           {without("roles"), Mapping{}, LacksDetail},
		"no roles where they are looked for": {whole, Mapping{Paths: Paths{Roles: []string{"https://acme.example/roles"}}}, LacksDetail},
	} {
		if got := c.mapping.Lacks(verified(t, payload(c.claims))); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
