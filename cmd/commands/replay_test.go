package commands

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/policy/replay"
	"github.com/durward-gateway/durward/storage"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func TestParseMoment(t *testing.T) {
	for text, want := range map[string]time.Time{
		"7d": noon.AddDate(0, 0, -7), "0d": noon, "24h": noon.AddDate(0, 0, -1), "1h30m": noon.Add(-90 * time.Minute),
		"2026-01-30T12:00:00Z": noon.AddDate(0, 0, -1), "2026-01-31T14:00:00+02:00": noon,
	} {
		if got, err := parseMoment("since", text, noon); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-7d", "-24h", "7", "7w", "yesterday", "2026-01-30", "99999999999d", "36501d"} {
		if got, err := parseMoment("since", text, noon); err == nil || !strings.Contains(err.Error(), "--since") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// users is a store that knows users alone.
type users struct{ storage.Store }

func (users) User(_ context.Context, _, id string) (storage.User, error) {
	if id == "u-1" {
		return storage.User{ID: id, Email: "alice@example.test"}, nil
	}
	return storage.User{}, storage.ErrNotFound
}

func replayedCalls(examples int) *replayed {
	r := &replayed{from: noon.AddDate(0, 0, -7), to: noon, tally: replay.NewTally(examples)}
	r.policy.Name, r.policy.Status, r.policy.Revision, r.policy.ServerName = "Issues", storage.PolicyDraft, 3, "Tracker"
	add := func(second int, user, name, decision, rule string, former replay.Decided) {
		r.tally.Add(replay.Changed, &replay.Difference{
			RecordID: "r", Time: noon.Add(time.Duration(second-60) * time.Second), UserID: user, Client: "agent", Kind: "tools/call", Name: name,
			Former: former, New: replay.Decided{Decision: decision, Rule: rule},
		}, replay.Missing{})
	}
	all := replay.Decided{Decision: "allow", Rule: "all", PolicyID: "p", Revision: 2}
	add(1, "u-1", "create_issue", "deny", "urgent", all)
	add(2, "u-2", "create_issue", "deny", "urgent", all)
	add(3, "u-1", "drop\x1b[2J", "deny", "", replay.Decided{Decision: "off"})
	add(4, "u-1", "delete_issue", "ask", "careful", replay.Decided{Decision: "deny"})
	add(5, "u-1", "list", "allow", "reading", replay.Decided{Decision: "deny", PolicyID: "p", Revision: 2})
	for range 10 {
		r.tally.Add(replay.Same, nil, replay.Missing{})
	}
	r.tally.Add(replay.Unjudged, nil, replay.Missing{Arguments: true, Claims: true})
	return r
}

func TestReplayText(t *testing.T) {
	var out strings.Builder
	report := textReport{out: &out, names: newUserNames(users{}, "o")}
	if err := report.end(t.Context(), replayedCalls(2)); err != nil {
		t.Fatal(err)
	}
	want := `Policy "Issues" (DRAFT, revision 3) for server "Tracker", from 2026-01-24T12:00:00Z to 2026-01-31T12:00:00Z

  16  calls that the policy would decide on
   3  would newly be denied
   1  would newly be allowed
   1  would newly ask
  10  stay as they were decided
   1  cannot be judged
      1 because arguments were not recorded, or were redacted; with 'audit { arguments on }' they are kept from then on
      1 because claims of the caller's token, which are not recorded, decide

By tool and rule, the most frequent first:
  2  tools/call:create_issue  allow → deny  by rule "urgent"
  1  tools/call:delete_issue  deny → ask    by rule "careful"
  1  tools/call:drop�[2J      off → deny    because no rule grants it
  1  tools/call:list          deny → allow  by rule "reading"

Newly denied, the latest:
  2026-01-31T11:59:02Z  tools/call:create_issue  u-2 through agent
      was allowed by rule "all" (revision 2), would be denied by rule "urgent"
  2026-01-31T11:59:03Z  tools/call:drop�[2J  alice@example.test through agent
      was let through, because nothing was judged, would be denied because no rule grants it

Newly allowed, the latest:
  2026-01-31T11:59:05Z  tools/call:list  alice@example.test through agent
      was denied without a rule for it (revision 2), would be allowed by rule "reading"

Newly asking, the latest:
  2026-01-31T11:59:04Z  tools/call:delete_issue  alice@example.test through agent
      was denied without an active policy, would be held for approval by rule "careful"
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	out.Reset()
	if err := report.end(t.Context(), &replayed{tally: replay.NewTally(1)}); err != nil || !strings.Contains(out.String(), "The audit log has no call in this time") {
		t.Errorf("%v: %s", err, &out)
	}
}

func TestReplayJSON(t *testing.T) {
	for _, test := range []struct {
		bounded bool
		want    int // lines
	}{{false, 4}, {true, 2}} {
		var out strings.Builder
		report := newJSONReport(&out, 1, test.bounded)
		for range 3 {
			if err := report.difference(&replay.Difference{RecordID: "r"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := report.end(t.Context(), replayedCalls(1)); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != test.want || !strings.Contains(lines[len(lines)-1], `"newly_denied":3,"newly_allowed":1,"newly_asking":1,"not_judged":{"calls":1,"arguments":1,`) {
			t.Errorf("bounded %v: %s", test.bounded, &out)
		}
	}
}

func TestVisible(t *testing.T) {
	if got := printable("a\x1b[2J\u202eb\n"); strings.ContainsAny(got, "\x1b\n\u202e") {
		t.Errorf("%q", got)
	}
	if got := printable(strings.Repeat("ä", 500)); len([]rune(got)) != 201 {
		t.Errorf("%d characters", len([]rune(got)))
	}
	if isTerminal(io.Discard) {
		t.Error("nobody watches")
	}
}
