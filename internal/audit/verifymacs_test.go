package audit

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/internal/audit/verify"
	"github.com/durward-gateway/durward/storage"
)

// formerNode adds records to the store as a durward without MACs did. A checkpoint of that time may or may not cover the
// node's last records.
func formerNode(t *testing.T, store *memory, node string, at time.Time, covered, open int) {
	t.Helper()
	chain := format.ChainOf(acme, node, storage.AuditStoreSegment)
	for range covered + open {
		e := intent("policy.update")
		e.At = at
		store.records = append(store.records, chain.Next(format.Marshal(e)))
		if chain.Sequence == int64(covered) {
			c := format.Checkpoint{Format: format.BareCheckpointFormat, Node: node, Segment: "00000001", Number: 1, Time: at, Final: true, Chains: []format.Head{format.HeadOf(&chain)}}
			store.checkpoints = append(store.checkpoints, c.Sign(sharedSigner()))
		}
	}
}

// TestForgedMACs checks that records which an attacker without the master key adds to a store, and forged MACs in it, are
// found.
func TestForgedMACs(t *testing.T) {
	const node, noMAC, foreign = "00112233445566ff", "have no MAC, and the node's records have", "has a MAC that is not of this gateway"
	now := time.Now()
	for name, c := range map[string]struct {
		forge func(t *testing.T, s *scene)
		want  string // "": there is no finding
	}{
		"a record's MAC taken away": {func(_ *testing.T, s *scene) { s.store.records[3].MAC = storage.AuditMAC{} }, noMAC},
		"a record's MAC changed":    {func(_ *testing.T, s *scene) { s.store.records[3].MAC[9] ^= 1 }, foreign},
		"another record's MAC":      {func(_ *testing.T, s *scene) { s.store.records[3].MAC = s.store.records[4].MAC }, foreign},
		"a chunk's MAC taken away":  {func(_ *testing.T, s *scene) { s.store.chunks[2].MAC = storage.AuditMAC{} }, noMAC},
		"another chunk's MAC":       {func(_ *testing.T, s *scene) { s.store.chunks[2].MAC = s.store.chunks[3].MAC }, foreign},
		"all MACs taken away, with the checkpoints": {func(_ *testing.T, s *scene) {
			for i := range s.store.records {
				s.store.records[i].MAC = storage.AuditMAC{}
			}
			for i := range s.store.chunks {
				s.store.chunks[i].MAC = storage.AuditMAC{}
			}
			s.store.checkpoints = nil
		}, noMAC},
		"a record appended": {func(_ *testing.T, s *scene) {
			last := s.store.records[len(s.store.records)-1]
			chain := format.ChainOf(last.OrganizationID, last.Node, last.Segment)
			chain.Sequence, chain.Hash = last.Sequence, last.Hash
			s.store.records = append(s.store.records, chain.Next(format.Marshal(intent("forged"))))
		}, noMAC},
		"a head moved": {func(_ *testing.T, s *scene) {
			s.store.heads = func(all []storage.AuditChain) []storage.AuditChain {
				for i := range all {
					if all[i].Segment == storage.AuditStoreSegment {
						all[i].MAC = storage.AuditMAC{}
					}
				}
				return all
			}
		}, "is where the store says that the chain ends"},
		"a node of a former version": {func(t *testing.T, s *scene) {
			formerNode(t, s.store, node, now.Add(-time.Hour), 5, 0)
		}, ""},
		"and its last records": {func(t *testing.T, s *scene) { formerNode(t, s.store, node, now.Add(-time.Hour), 5, 2) }, ""},
		"a node of a former version that beside this one writes": {func(t *testing.T, s *scene) { formerNode(t, s.store, node, now.Add(time.Hour), 5, 2) }, ""},
		"a node invented":             {func(t *testing.T, s *scene) { formerNode(t, s.store, node, now.Add(time.Hour), 0, 2) }, "no checkpoint of their node covers them"},
		"a node invented, dated back": {func(t *testing.T, s *scene) { formerNode(t, s.store, node, now.Add(-time.Hour), 0, 2) }, "no checkpoint of their node covers them"},
		"a former node continued": {func(t *testing.T, s *scene) {
			formerNode(t, s.store, node, now.Add(-time.Hour), 5, 0)
			last := s.store.records[len(s.store.records)-1]
			chain := format.ChainOf(acme, node, storage.AuditStoreSegment)
			chain.Sequence, chain.Hash = last.Sequence, last.Hash
			s.store.records = append(s.store.records, chain.Next(format.Marshal(intent("forged"))))
		}, "record 6: records 6 to 6 have no MAC, though others have since"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c.forge(t, s)
			report, err := verify.Log(t.Context(), verify.Journals{Dir: s.root, All: c.want != ""}, s.store, sharedKeys())
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, f := range report.Findings {
				found = found || strings.Contains(f.String(), c.want)
			}
			if c.want == "" && len(report.Findings) > 0 || c.want != "" && !found {
				t.Errorf("want %q, got %v", c.want, report.Findings)
			}
			if bare := strings.Contains(strings.Join(report.Notes, "\n"), node+": "); c.want == "" && !bare {
				t.Errorf("%q", report.Notes)
			}
		})
	}
}

// TestVerifyWithoutMasterKey checks that an auditor with only the public keys finds missing MACs, and is told that MACs
// are not checked.
func TestVerifyWithoutMasterKey(t *testing.T) {
	s := newScene(t)
	check := func() verify.Report {
		t.Helper()
		report, err := verify.Log(t.Context(), verify.Journals{Dir: s.root, All: true}, s.store, verify.Keys{Signatures: sharedSigner().Public()})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	s.store.records[3].MAC[9] ^= 1
	report := check()
	whole := wantSealed(t, s, len(report.Findings))
	if report.Standing.Checked || report.Standing.Sealed != whole {
		t.Errorf("%+v", report)
	}
	s.store.records[3].MAC = storage.AuditMAC{}
	if report := check(); len(report.Findings) != 1 {
		t.Errorf("%+v", report)
	}
}

// wantSealed fails the test on any finding, and returns the number of records.
func wantSealed(t *testing.T, s *scene, findings int) int64 {
	t.Helper()
	if findings > 0 {
		t.Errorf("%d findings", findings)
	}
	s.store.records[3].MAC[9] ^= 1
	defer func() { s.store.records[3].MAC[9] ^= 1 }()
	report := wantClean(t, s.root, s.store)
	if !report.Standing.Checked || report.Standing.Sealed != int64(report.Records) || report.Standing.Bare != 0 {
		t.Errorf("%+v", report.Standing)
	}
	return report.Standing.Sealed
}

// TestRehashed checks that every change in a journal is found and not shipped, even when all later hashes are computed
// again: hashes need no key.
func TestRehashed(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // the same in every run
	for range 40 {
		root, store := t.TempDir(), new(memory)
		j := openJournal(t, testOptions(t, root))
		leaveAlone(j) // the lines are counted
		for range 6 {
			if err := j.Append(acme, outcomeOf(intent("create_issue"))); err != nil {
				t.Fatal(err)
			}
		}
		kill(t, j)
		lines := bytes.SplitAfter([]byte(strings.TrimRight(readFile(t, segments.Path(j.dir, 1)), "\x00")), []byte("\n"))
		changed, chain := 1+random.IntN(6), format.ChainOf(acme, j.node, "00000001")
		p := former.NewParser()
		for i := 1; i <= 6; i++ {
			l, err := p.Parse(bytes.TrimSuffix(lines[i], []byte("\n")))
			if err != nil {
				t.Fatal(err)
			}
			text := l.Record.Text
			if i == changed {
				text = bytes.Replace(text, []byte(`"ok"`), []byte(`"no"`), 1)
			}
			hash, _ := format.Next(&chain, text, nil)
			lines[i] = recordLine(acme, int64(i), &hash, l.Record.MAC[:], text)
		}
		(&scene{root: root, dir: j.dir, store: store, journal: j}).rewrite(t, 1, lines)
		if findings := findings(t, root, store); len(findings) == 0 || findings[0].Sequence != int64(changed) {
			t.Fatalf("record %d was changed, found: %v", changed, findings)
		}
		again := openJournal(t, testOptions(t, root))
		if err := newShipper(again, store).ship(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(findings(t, root, store)) == 0 {
			t.Error("nothing is found after the start")
		}
		for i := range store.chunks {
			if c := &store.chunks[i]; c.Last >= int64(changed) {
				t.Errorf("records %d to %d are shipped", c.First, c.Last)
			}
		}
		if kept, err := filepath.Glob(filepath.Join(j.dir, "*"+segments.DamagedSuffix)); err != nil || len(kept) != 1 {
			t.Errorf("%v, %v", kept, err)
		}
	}
}

// TestForgedCheckpoint checks that a start does not accept, and does not ship, a checkpoint that the gateway has not
// signed.
func TestForgedCheckpoint(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	leaveAlone(j) // it would make a checkpoint of its own
	if err := j.Append(acme, intent("create_issue")); err != nil {
		t.Fatal(err)
	}
	kill(t, j)
	text := strings.TrimRight(readFile(t, segments.Path(j.dir, 1)), "\x00")
	forged := format.Checkpoint{Format: format.CheckpointFormat, Node: j.node, Segment: "00000001", Number: 1, Time: time.Now().UTC(), Final: true, Chains: []format.Head{}}
	signed := forged.Sign(newGatewayKeys().signer)
	(&scene{root: root, dir: j.dir, store: store, journal: j}).rewrite(t, 1, [][]byte{[]byte(text), format.AppendCheckpoint(nil, &signed)})
	again := openJournal(t, testOptions(t, root))
	if again.last.number != 1 || again.last.hash == format.CheckpointHash(&signed) {
		t.Errorf("the next checkpoint follows number %d, the forged one: %v", again.last.number, again.last.hash == format.CheckpointHash(&signed))
	}
	if err := newShipper(again, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range store.checkpoints {
		if !format.CheckSignature(&store.checkpoints[i], sharedSigner()) {
			t.Error("it is shipped")
		}
	}
	if len(findings(t, root, store)) == 0 {
		t.Error("nothing is found")
	}
}

// TestForgedHeader checks that a start signs no record without a MAC of a node that has MACs, whatever a header in the
// journal says of its format. An auditor without the master key takes what a checkpoint was signed over for the gateway's.
func TestForgedHeader(t *testing.T) {
	for name, before := range map[string]string{"as the first line": "", "behind another line": "x\n"} {
		t.Run(name, func(t *testing.T) {
			root, store := t.TempDir(), new(memory)
			o := testOptions(t, root).withDefaults()
			j := openJournal(t, o)
			appendSome(t, j, acme, "create_issue", 3)
			if err := turn(j); err != nil {
				t.Fatal(err)
			}
			if err := newShipper(j, store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			kill(t, j)
			chain, text := format.ChainOf(acme, j.node, "00000002"), format.AppendEntry(nil, outcomeOf(intent("forged")))
			hash, _ := format.Next(&chain, text, nil)
			h := format.Header{Format: format.BareSegmentFormat, Node: j.node, Segment: chain.Segment, Time: time.Now().UTC(), Checkpoint: j.last.number, Previous: j.last.hash}
			(&scene{dir: j.dir}).rewrite(t, 2, [][]byte{[]byte(before), format.Marshal(h), []byte("\n"), jsonLine(acme, 1, &hash, nil, text)})
			if err := (&Trail{store: store, log: o.Log}).adoptOne(t.Context(), o, j.dir); err != nil {
				t.Fatal(err)
			}
			// The attacker puts the record into the store, and removes the file that was set aside.
			if err := os.Remove(segments.Path(j.dir, 2) + segments.DamagedSuffix); err != nil {
				t.Fatal(err)
			}
			w := newChunk(j.node, chain.Segment, acme, new([32]byte), 1)
			w.add(1, &hash, text, format.NanosOf(text))
			forged, _ := w.finish(nil)
			forged.MAC = storage.AuditMAC{1}
			store.chunks = append(store.chunks, forged)
			report, err := verify.Log(t.Context(), verify.Journals{Dir: root, All: true}, store, verify.Keys{Signatures: sharedSigner().Public()})
			if err != nil || len(report.Findings) == 0 {
				t.Errorf("nothing is found, %v", err)
			}
		})
	}
}
