package engine

import (
	"runtime"
	"sync"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// compiledCondition returns the compiled condition of a policy's only rule.
func compiledCondition(t *testing.T, organization, expr string) *expression {
	t.Helper()
	p := active(when(grant("only", "tools/call:*"), expr))
	p.OrganizationID = organization
	return compile(t, p).unscoped.rules[0].condition.expr
}

// TestSharedExpressions checks that policies of one organization share equal expressions, and that policies of
// different organizations do not. An expression that no policy uses any more is forgotten.
func TestSharedExpressions(t *testing.T) {
	const expr = "R.attr.shared == 1"
	first, again := compiledCondition(t, "o1", expr), compiledCondition(t, "o1", expr)
	if first != again {
		t.Error("a copy was compiled again")
	}
	if first == compiledCondition(t, "o2", expr) {
		t.Error("shared between organizations")
	}
	if unowned := compiledCondition(t, "", expr); unowned == compiledCondition(t, "", expr) {
		t.Error("shared by nobody's")
	}
	if first == compiledCondition(t, "o1", expr+" ") {
		t.Error("another expression is taken for it")
	}
	twice := compile(t, active(when(grant("one", "tools/call:x"), expr), when(grant("other", "tools/call:y"), expr))).unscoped.rules
	if twice[0].condition.expr != twice[1].condition.expr {
		t.Error("compiled again for another rule of a policy")
	}
	runtime.KeepAlive(again)
	for range 1000 {
		if _, kept := shared.Load(sharedKey{"o1", expr}); !kept {
			break
		}
		runtime.GC()
	}
	if _, kept := shared.Load(sharedKey{"o1", expr}); kept {
		t.Error("still kept though nobody has it")
	}
	if compiledCondition(t, "o1", expr) == nil {
		t.Error("not compiled after it was forgotten")
	}
}

// TestSharedFaults checks that mistakes are reported each time.
func TestSharedFaults(t *testing.T) {
	p := active(when(grant("only", "tools/call:*"), "R.attr ++"))
	p.OrganizationID = "o1"
	for range 2 {
		if _, err := Compile(serverSlug, serverID, []storage.Policy{p}); err == nil {
			t.Error("compiled")
		}
	}
}

// TestSharedConcurrently is a test for the race detector, with garbage collection at the same time.
func TestSharedConcurrently(t *testing.T) {
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				p := active(when(grant("only", "tools/call:*"), "R.attr.concurrent > 2"))
				p.OrganizationID = "o1"
				if _, err := Compile(serverSlug, serverID, []storage.Policy{p}); err != nil {
					t.Error(err)
				}
			}
			runtime.GC()
		})
	}
	wait.Wait()
}
