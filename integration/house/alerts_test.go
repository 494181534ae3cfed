package house

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAlerts checks that each alert has a section that says what to do, and a test in which it fires. What the rules
// mean is tested with promtool (`make rules-test`), which is too large for each run.
func TestAlerts(t *testing.T) {
	const rules = "../../deploy/prometheus/"
	page, tests := read(t, "../../docs/slo.md"), documents(t, read(t, rules+"tests.yaml"))
	var fired []string
	for _, test := range objects(tests[0], "tests") {
		for _, c := range objects(test, "alert_rule_test") {
			if len(objects(c, "exp_alerts")) > 0 {
				fired = append(fired, c["alertname"].(string))
			}
		}
	}
	heading := regexp.MustCompile(`(?m)^### (\w+)$`)
	var sections []string
	for _, s := range heading.FindAllStringSubmatch(page, -1) {
		sections = append(sections, "docs/slo.md#"+strings.ToLower(s[1]))
	}
	seen := 0
	for _, group := range objects(documents(t, read(t, rules+"alerts.yaml"))[0], "groups") {
		for _, rule := range objects(group, "rules") {
			name, _ := rule["alert"].(string)
			seen++
			if book, _ := at(rule, "annotations", "runbook").(string); !slices.Contains(sections, book) || !strings.Contains(page, name) {
				t.Errorf("%s has no section in docs/slo.md: %q", name, book)
			}
			if severity := at(rule, "labels", "severity"); severity != "critical" && severity != "warning" && severity != "info" {
				t.Errorf("%s has the severity %v", name, severity)
			}
			if !slices.Contains(fired, name) {
				t.Errorf("%s fires in no test of %stests.yaml", name, rules)
			}
		}
	}
	if seen < 10 {
		t.Errorf("found %d alerts only", seen)
	}
}
