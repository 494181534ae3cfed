package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// TestBare checks the findings and notes about records without MACs, beside a node that has had MACs since start.
func TestBare(t *testing.T) {
	const (
		since  = "have no MAC, though others have since 2027-01-15T08:00:00Z, and no checkpoint of their node covers them"
		mixed  = "have no MAC, and the node's records have: the gateway did not write them, or their MACs were taken away"
		record = "node " + nodeB + ", segment store, organization " + acme + ", record "
		chunk  = "node " + nodeB + ", segment 00000001, organization " + acme + ", record "
	)
	note := func(n int, until string) string {
		return fmt.Sprintf("node %s: %d records, until %s, have no MAC: a durward before MACs wrote them, and only checkpoints cover them", nodeB, n, until)
	}
	open := func(n int) string {
		return fmt.Sprintf("; no checkpoint of that durward covers %d of them, which whoever could write the store or the journal can have added", n)
	}
	uncovered := func(n int) string {
		return fmt.Sprintf("node %s, whose journal is not here: the last records of the store itself, %d in all, are covered by no checkpoint", nodeB, n)
	}
	// bare writes records of node B without MACs, of these times after start.
	bare := func(b *book, after ...time.Duration) {
		for _, d := range after {
			b.own(acme, nodeB, start.Add(d), nil)
		}
	}
	sign := func(b *book, after time.Duration, edit func(c *format.Checkpoint)) {
		b.sign(nodeB, "00000001", start.Add(after), edit)
	}
	for name, c := range map[string]struct {
		write    func(b *book)
		findings []string
		notes    []string
		standing Standing // of node B
	}{
		"nothing": {func(*book) {}, nil, nil, Standing{}},
		"all under a checkpoint of their own": {func(b *book) {
			bare(b, time.Hour, 2*time.Hour)
			sign(b, 2*time.Hour, unsealed)
		}, nil, []string{note(2, "2027-01-15T10:00:00Z")}, Standing{Bare: 2}},
		"the last ones of a minute behind it": {func(b *book) {
			bare(b, time.Hour, 2*time.Hour)
			sign(b, 2*time.Hour, unsealed)
			bare(b, 2*time.Hour+time.Minute, 2*time.Hour+time.Minute)
		}, nil, []string{note(4, "2027-01-15T10:01:00Z") + open(2), uncovered(2)}, Standing{Bare: 4, Unproven: 2, Open: 2}},
		"those that are later": {func(b *book) {
			bare(b, time.Hour, 2*time.Hour)
			sign(b, 2*time.Hour, unsealed)
			bare(b, 2*time.Hour, 2*time.Hour+time.Minute+1)
		}, []string{record + "3: records 3 to 4 " + since}, []string{uncovered(2)}, Standing{Open: 2}},
		"those behind two checkpoints, of which the second is earlier": {func(b *book) {
			bare(b, time.Hour)
			sign(b, 2*time.Hour, unsealed)
			sign(b, time.Hour, func(c *format.Checkpoint) { unsealed(c); c.Segment = "00000002" })
			bare(b, 2*time.Hour)
		}, nil, []string{note(2, "2027-01-15T10:00:00Z") + open(1), uncovered(1)}, Standing{Bare: 2, Unproven: 1, Open: 1}},
		"without a checkpoint": {func(b *book) { bare(b, -time.Hour) }, []string{record + "1: records 1 to 1 " + since}, []string{uncovered(1)}, Standing{Open: 1}},
		"found, from before the first MAC": {func(b *book) {
			bare(b, -time.Hour, -1)
			sign(b, time.Hour, found)
		}, nil, []string{note(2, "2027-01-15T07:59:59Z") + open(2)}, Standing{Bare: 2, Unproven: 2}},
		"found, from the time of the first MAC": {func(b *book) {
			bare(b, -time.Hour, 0)
			sign(b, time.Hour, found)
		}, []string{record + "1: records 1 to 2 " + since}, nil, Standing{}},
		"found, and one more": {func(b *book) {
			bare(b, -time.Hour)
			sign(b, time.Hour, found)
			bare(b, -time.Hour)
		}, []string{record + "1: records 1 to 2 " + since}, []string{uncovered(1)}, Standing{Open: 1}},
		"found, behind a checkpoint of their own": {func(b *book) {
			bare(b, -time.Hour)
			sign(b, -time.Hour, unsealed)
			bare(b, -time.Second)
			sign(b, time.Hour, func(c *format.Checkpoint) { found(c); c.Segment = "00000002" })
		}, nil, []string{note(2, "2027-01-15T07:59:59Z") + open(1)}, Standing{Bare: 2, Unproven: 1}},
		"before a checkpoint that states MACs": {func(b *book) {
			bare(b, -time.Hour)
			sign(b, -time.Hour, final)
		}, []string{
			record + "1: is where the store says that the chain ends, and what it says has no MAC of this gateway",
			record + "1: records 1 to 1 " + mixed,
		}, nil, Standing{}},
		"before a checkpoint that states MACs, and found by the next one": {func(b *book) {
			sign(b, -time.Hour, final)
			bare(b, -time.Hour)
			sign(b, -time.Hour, func(c *format.Checkpoint) { found(c); c.Segment = "00000002" })
		}, []string{
			record + "1: is where the store says that the chain ends, and what it says has no MAC of this gateway",
			record + "1: records 1 to 1 " + mixed,
		}, nil, Standing{}},
		"under a checkpoint of before": {func(b *book) {
			bare(b, 2*time.Hour, 3*time.Hour)
			sign(b, time.Hour, unsealed)
		}, nil, []string{note(2, "2027-01-15T11:00:00Z")}, Standing{Bare: 2}},
		"without a time or a checkpoint": {func(b *book) {
			c := format.ChainOf(acme, nodeB, storage.AuditStoreSegment)
			r := c.Next([]byte("{}"))
			r.At = format.TimeOf(r.Text)
			b.records = append(b.records, r)
			b.setEnd(c)
		}, []string{record + "1: records 1 to 1 " + since}, []string{uncovered(1)}, Standing{Open: 1}},
		"between others": {func(b *book) {
			b.own(acme, nodeB, start.Add(time.Hour), gateway)
			bare(b, time.Hour)
			b.own(acme, nodeB, start.Add(time.Hour), gateway)
			bare(b, time.Hour, time.Hour)
			b.own(acme, nodeB, start.Add(time.Hour), gateway)
			sign(b, time.Hour, final)
		}, []string{record + "2: records 2 to 2 " + mixed, record + "4: records 4 to 5 " + mixed}, nil, Standing{Sealed: 3}},
		"of two organizations": {func(b *book) {
			bare(b, time.Hour)
			b.own(other, nodeB, start.Add(3*time.Hour), nil)
			sign(b, 3*time.Hour, unsealed)
			bare(b, 2*time.Hour)
		}, nil, []string{note(3, "2027-01-15T11:00:00Z") + open(1), uncovered(1)}, Standing{Bare: 3, Unproven: 1, Open: 1}},
		"after the clock was set back": {func(b *book) {
			bare(b, 2*time.Hour, time.Hour)
			sign(b, 2*time.Hour, unsealed)
		}, nil, []string{note(2, "2027-01-15T10:00:00Z")}, Standing{Bare: 2}},
		"in chunks": {func(b *book) {
			b.ship(acme, nodeB, "00000001", nil, start.Add(time.Hour), start.Add(2*time.Hour))
			b.ship(acme, nodeB, "00000001", nil, start.Add(3*time.Hour))
			sign(b, 3*time.Hour, unsealed)
		}, nil, []string{note(3, "2027-01-15T11:00:00Z")}, Standing{Bare: 3}},
		"in chunks without a checkpoint": {func(b *book) {
			b.ship(acme, nodeB, "00000001", nil, start.Add(time.Hour), start.Add(2*time.Hour))
			b.ship(acme, nodeB, "00000001", nil, start.Add(3*time.Hour))
		}, []string{chunk + "1: records 1 to 3 " + since}, []string{"node " + nodeB + " keeps its journal elsewhere: what it has not shipped yet is not verified"}, Standing{}},
		"in chunks between others": {func(b *book) {
			for i := range 5 {
				by := gateway
				if i%2 == 1 {
					by = nil
				}
				at := start.Add(time.Duration(i+1) * time.Hour)
				b.ship(acme, nodeB, "00000001", by, at, at)
			}
			sign(b, time.Hour, final)
		}, []string{chunk + "3: records 3 to 4 " + mixed, chunk + "7: records 7 to 8 " + mixed}, nil, Standing{Sealed: 6}},
		"in chunks that overlap": {func(b *book) {
			b.ship(acme, nodeB, "00000001", nil, start.Add(time.Hour), start.Add(time.Hour), start.Add(time.Hour))
			b.ship(acme, nodeB, "00000001", nil, start.Add(2*time.Hour))
			sign(b, 2*time.Hour, unsealed)
			overlap(b, nodeB, "00000001", nil, 3, 4, start.Add(90*time.Minute))
		}, []string{
			chunk + "3: records 3 to 3 are in the store twice", chunk + "4: is not the record that checkpoint 1 was signed over", chunk + "4: records 4 to 4 are in the store twice",
		}, []string{note(4, "2027-01-15T09:30:00Z")}, Standing{Bare: 4}},
	} {
		b := new(book)
		b.own(acme, nodeA, start.Add(time.Minute), gateway)
		b.own(acme, nodeA, start, gateway)
		b.own(acme, nodeA, start.Add(time.Minute), gateway)
		b.sign(nodeA, "00000001", start, final)
		c.write(b)
		report := b.verify(t)
		if diff := cmp.Diff(c.findings, texts(report)); diff != "" {
			t.Errorf("%s: findings: %s", name, diff)
		}
		if diff := cmp.Diff(c.notes, report.Notes); diff != "" {
			t.Errorf("%s: notes: %s", name, diff)
		}
		c.standing.Checked, c.standing.Since = true, start
		c.standing.Sealed += 3
		if diff := cmp.Diff(c.standing, report.Standing); diff != "" {
			t.Errorf("%s: standing: %s", name, diff)
		}
	}
}

// TestOnlyBare checks that a log of a durward before MACs has no findings, however its records are covered.
func TestOnlyBare(t *testing.T) {
	b := new(book)
	b.own(acme, nodeB, start, nil)
	b.own(acme, nodeB, start.Add(time.Hour), nil)
	report := b.verify(t)
	if len(report.Findings) > 0 || report.Standing != (Standing{Checked: true, Bare: 2, Unproven: 2, Open: 2}) {
		t.Errorf("%v, %+v", report.Findings, report.Standing)
	}
}

// TestHead checks the end of a chain that the store states, when nothing else of the chain is wrong.
func TestHead(t *testing.T) {
	const problem = "node " + nodeA + ", segment store, organization " + acme + ", record 2: is where the store says that the chain ends, and what it says has no MAC of this gateway"
	const nowhere = "node " + nodeA + ", segment store, organization " + acme + ", record 2: is not where the store says that the chain ends"
	for name, c := range map[string]struct {
		by      key // makes the MACs of the records; nil: none
		change  func(head *storage.AuditChain)
		without bool // the master key
		want    []string
	}{
		"of one record less":                {gateway, func(c *storage.AuditChain) { c.Sequence-- }, false, []string{strings.Replace(nowhere, "record 2", "record 1", 1), nowhere}},
		"of another hash":                   {gateway, func(c *storage.AuditChain) { c.Hash[0] ^= 1 }, false, []string{nowhere}},
		"of nothing":                        {gateway, func(c *storage.AuditChain) { *c = format.ChainOf(acme, nodeA, c.Segment) }, false, []string{nowhere}},
		"as it is":                          {gateway, func(*storage.AuditChain) {}, false, nil},
		"without its MAC":                   {gateway, func(c *storage.AuditChain) { c.MAC = storage.AuditMAC{} }, false, []string{problem}},
		"with another MAC":                  {gateway, func(c *storage.AuditChain) { c.MAC[0] ^= 1 }, false, []string{problem}},
		"of former records":                 {nil, func(*storage.AuditChain) {}, false, nil},
		"of former records, with a MAC":     {nil, func(c *storage.AuditChain) { c.MAC[0] ^= 1 }, false, []string{problem}},
		"without its MAC or a master key":   {gateway, func(c *storage.AuditChain) { c.MAC = storage.AuditMAC{} }, true, []string{problem}},
		"with another MAC, without the key": {gateway, func(c *storage.AuditChain) { c.MAC[0] ^= 1 }, true, nil},
	} {
		b := new(book)
		b.own(acme, nodeA, start, c.by)
		b.own(acme, nodeA, start, c.by)
		b.heads = func(all []storage.AuditChain) []storage.AuditChain {
			for i := range all {
				c.change(&all[i])
			}
			return all
		}
		keys := Keys{Signatures: gateway, MACs: gateway}
		if c.without {
			keys.MACs = nil
		}
		report, err := Log(t.Context(), Journals{}, b, keys)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, texts(report)); diff != "" || report.Standing.Checked == c.without {
			t.Errorf("%s: %s, checked: %v", name, diff, report.Standing.Checked)
		}
	}
}

// TestHeadOfWrongRecord checks that a chain of which a record is wrong is reported once, and other chains as well.
func TestHeadOfWrongRecord(t *testing.T) {
	b := new(book)
	for _, name := range [...]struct{ organization, node string }{{acme, nodeA}, {other, nodeA}, {acme, nodeB}} {
		b.own(name.organization, name.node, start, gateway)
	}
	b.heads = func(all []storage.AuditChain) []storage.AuditChain {
		for i := range all {
			all[i].MAC[0] ^= 1
		}
		return all
	}
	b.records[0].MAC[0] ^= 1
	b.own(acme, nodeB, start, gateway)
	b.ship(acme, nodeB, "00000001", gateway, start)
	b.chunks[0].MAC[0] ^= 1
	b.sign(nodeB, "00000001", start, final)
	const head = "is where the store says that the chain ends, and what it says has no MAC of this gateway"
	want := []string{
		"node " + nodeA + ", segment store, organization " + acme + ", record 1: " + foreignMAC,
		"node " + nodeA + ", segment store, organization " + other + ", record 1: " + head,
		"node " + nodeB + ", segment 00000001, organization " + acme + ", record 1: in the store " + foreignMAC,
		"node " + nodeB + ", segment store, organization " + acme + ", record 2: " + head,
	}
	if diff := cmp.Diff(want, texts(b.verify(t))); diff != "" {
		t.Error(diff)
	}
}

// TestNodesInOrder checks that the notes about records without MACs, and the anchors, have the order of their nodes.
func TestNodesInOrder(t *testing.T) {
	b := new(book)
	for i := range 7 {
		node := fmt.Sprintf("%016x", 7-i)
		b.own(acme, node, start, nil)
		b.sign(node, "00000001", start, unsealed)
	}
	report := b.verify(t)
	if len(report.Notes) != 7 || !slices.IsSorted(report.Notes) {
		t.Errorf("%q", report.Notes)
	}
	if len(report.Anchors) != 7 || !slices.IsSortedFunc(report.Anchors, func(a, b Anchor) int { return strings.Compare(a.Node, b.Node) }) {
		t.Errorf("%+v", report.Anchors)
	}
}
