package taskbook

import (
	"strconv"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/mcpsession"
)

func TestOwns(t *testing.T) {
	var b Book
	alice := mcpsession.Binding{Organization: "o", User: "alice", Agent: "a", Server: "s"}
	b.Created(alice, "1")
	b.Created(alice, "1")
	b.Created(alice, "")
	b.Created(alice, strings.Repeat("x", maxID+1))
	if !b.Owns(alice, "1") || b.count != 1 {
		t.Errorf("owns %v, %d tasks", b.Owns(alice, "1"), b.count)
	}
	for name, other := range map[string]mcpsession.Binding{
		"O14 another user":         {Organization: "o", User: "bob", Agent: "a", Server: "s"},
		"O14 another agent":        {Organization: "o", User: "alice", Agent: "b", Server: "s"},
		"O14 another server":       {Organization: "o", User: "alice", Agent: "a", Server: "s2"},
		"O14 another organization": {Organization: "p", User: "alice", Agent: "a", Server: "s"},
	} {
		if b.Owns(other, "1") {
			t.Errorf("%s owns the task", name)
		}
	}
	if b.Owns(alice, "2") || b.Owns(alice, "") {
		t.Error("a task that nobody created is owned")
	}
}

func TestBounds(t *testing.T) {
	var b Book
	owner := func(i int) mcpsession.Binding { return mcpsession.Binding{User: strconv.Itoa(i)} }
	for i := range maxOwned + 1 {
		b.Created(owner(0), strconv.Itoa(i))
	}
	if b.Owns(owner(0), "0") || !b.Owns(owner(0), "1") || b.count != maxOwned {
		t.Errorf("an owner's oldest task is known: %v; %d tasks", b.Owns(owner(0), "0"), b.count)
	}
	for i := 1; i <= maxTasks; i++ {
		b.Created(owner(i), "x")
	}
	if b.count > maxTasks || b.Owns(owner(0), "1") || !b.Owns(owner(maxTasks), "x") || b.recent.Len() != len(b.owners) {
		t.Errorf("%d tasks of %d owners", b.count, len(b.owners))
	}
}
