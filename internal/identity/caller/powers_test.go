package caller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPowers(t *testing.T) {
	named := RoleNames{Admin: "admin", Auditor: "auditor", PolicyEditor: "editor", Operator: "operator"}
	for name, c := range map[string]struct {
		names RoleNames
		roles []string
		want  Powers
	}{
		"none":                        {named, nil, Powers{}},
		"other roles":                 {named, []string{"sales", "user"}, Powers{}},
		"administrator":               {named, []string{"sales", "admin"}, Powers{Admin: true}},
		"auditor":                     {named, []string{"auditor"}, Powers{Auditor: true}},
		"policy editor":               {named, []string{"editor"}, Powers{PolicyEditor: true}},
		"operator":                    {named, []string{"operator"}, Powers{Operator: true}},
		"several":                     {named, []string{"operator", "editor"}, Powers{PolicyEditor: true, Operator: true}},
		"one role for two":            {RoleNames{Auditor: "staff", Operator: "staff"}, []string{"staff"}, Powers{Auditor: true, Operator: true}},
		"J20 other case":              {named, []string{"Auditor", "OPERATOR"}, Powers{}},
		"J20 joined":                  {named, []string{"auditor operator", "admin,editor"}, Powers{}},
		"J20 without names":           {RoleNames{Admin: "admin"}, []string{"auditor", "policy_editor", "operator"}, Powers{}},
		"J20 an empty role is nobody": {RoleNames{}, []string{""}, Powers{}},
	} {
		if diff := cmp.Diff(c.want, c.names.Powers(c.roles)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
