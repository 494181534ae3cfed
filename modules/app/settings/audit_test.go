package settings

import (
	"strings"
	"testing"
)

func TestAuditRules(t *testing.T) {
	for name, c := range map[string]struct {
		rules AuditRules
		want  string
	}{
		"nothing":             {AuditRules{}, ""},
		"everything":          {AuditRules{Required: []string{"mcp", "llm"}, BestEffort: []string{"sse"}, Sync: "always", Sinks: []AuditSink{{Kind: "log"}, {Kind: "file", Path: "x"}}}, ""},
		"unknown traffic":     {AuditRules{Required: []string{"web"}}, `unrecognized kind of traffic "web"`},
		"both":                {AuditRules{Required: []string{"mcp"}, BestEffort: []string{"mcp"}}, "cannot be required and best_effort"},
		"unknown sync":        {AuditRules{Sync: "never"}, `unrecognized sync "never"`},
		"file without a path": {AuditRules{Sinks: []AuditSink{{Kind: "file"}}}, "needs a path"},
		"log with a path":     {AuditRules{Sinks: []AuditSink{{Kind: "log", Path: "x"}}}, "takes no path"},
		"unknown sink":        {AuditRules{Sinks: []AuditSink{{Kind: "syslog"}}}, `unrecognized sink "syslog"`},
		"the same sink twice": {AuditRules{Sinks: []AuditSink{{Kind: "file", Path: "x"}, {Kind: "file", Path: "x"}}}, "sink file x is given twice"},
	} {
		err := c.rules.Check()
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
