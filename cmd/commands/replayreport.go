package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/durward-gateway/durward/internal/policy/replay"
	"github.com/durward-gateway/durward/storage"
)

// replayReport shows a replay.
type replayReport interface {
	difference(d *replay.Difference) error
	end(ctx context.Context, r *replayed) error
}

// jsonReport writes NDJSON: the differences as they come, then the counts.
type jsonReport struct {
	out     *bufio.Writer
	encoder *json.Encoder
	left    int // differences that are still to be written
	bounded bool
}

func newJSONReport(out io.Writer, limit int, bounded bool) *jsonReport {
	r := &jsonReport{out: bufio.NewWriter(out), left: limit, bounded: bounded}
	r.encoder = json.NewEncoder(r.out)
	r.encoder.SetEscapeHTML(false)
	return r
}

func (j *jsonReport) difference(d *replay.Difference) error {
	if j.left--; j.bounded && j.left < 0 {
		return nil
	}
	return j.encoder.Encode(struct {
		Type string `json:"type"`
		*replay.Difference
	}{"difference", d})
}

func (j *jsonReport) end(_ context.Context, r *replayed) error {
	type policy struct {
		ID       string               `json:"id"`
		Name     string               `json:"name"`
		Status   storage.PolicyStatus `json:"status"`
		Revision int                  `json:"revision"`
		ServerID string               `json:"mcp_server_id"`
	}
	p := &r.policy
	if err := j.encoder.Encode(struct {
		Type    string    `json:"type"`
		Policy  policy    `json:"policy"`
		From    time.Time `json:"from"`
		To      time.Time `json:"to"`
		Records int       `json:"records"`
		replay.Counts
		Groups    []replay.Group `json:"groups"`
		Ungrouped int            `json:"ungrouped"`
	}{"summary", policy{p.ID, p.Name, p.Status, p.Revision, p.ServerID}, r.from, r.to, r.tally.Records, r.tally.Counts, r.tally.Groups(), r.tally.Ungrouped}); err != nil {
		return err
	}
	return j.out.Flush()
}

// shownGroups is the number of groups that the text names.
const shownGroups = 30

// textReport writes for people, after all records are counted.
type textReport struct {
	out   io.Writer
	names *userNames
}

func (*textReport) difference(*replay.Difference) error { return nil }

func (t *textReport) end(ctx context.Context, r *replayed) error {
	out := bufio.NewWriter(t.out)
	c := &r.tally.Counts
	fmt.Fprintf(out, "Policy %q (%s, revision %d) for server %q, from %s to %s\n\n", printable(r.policy.Name), r.policy.Status, r.policy.Revision,
		printable(r.policy.ServerName), r.from.Format(time.RFC3339), r.to.Format(time.RFC3339))
	if c.Calls == 0 {
		fmt.Fprint(out, "The audit log has no call in this time that the policy would decide on: none of its server by an agent that it is for.\n")
		return out.Flush()
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range []struct {
		n    int
		text string
	}{
		{c.Calls, "calls that the policy would decide on"}, {c.NewlyDenied, "would newly be denied"}, {c.NewlyAllowed, "would newly be allowed"},
		{c.NewlyAsking, "would newly ask"}, {c.Same, "stay as they were decided"}, {c.NotJudged.Calls, "cannot be judged"},
	} {
		fmt.Fprintf(table, "%d\t  %s\n", line.n, line.text)
	}
	_ = table.Flush() // out keeps the error
	writeMissing(out, &c.NotJudged)
	writeGroups(out, r.tally)
	for _, decision := range []string{"deny", "allow", "ask"} {
		t.examples(ctx, out, decision, r.tally.Examples(decision))
	}
	return out.Flush()
}

// newly maps a new decision to its text.
var newly = map[string]string{"deny": "Newly denied", "allow": "Newly allowed", "ask": "Newly asking"}

func writeMissing(out io.Writer, n *replay.NotJudged) {
	for _, line := range []struct {
		n    int
		text string
	}{
		{n.Arguments, "because arguments were not recorded, or were redacted; with 'audit { arguments on }' they are kept from then on"},
		{n.Roles, "because the caller's roles and groups were not recorded"},
		{n.Claims, "because claims of the caller's token, which are not recorded, decide"},
		{n.Streams, "because the record does not tell whether streams needed a grant then"},
	} {
		if line.n > 0 {
			fmt.Fprintf(out, "      %d %s\n", line.n, line.text)
		}
	}
}

func writeGroups(out io.Writer, tally *replay.Tally) {
	groups := tally.Groups()
	if len(groups) == 0 {
		return
	}
	fmt.Fprint(out, "\nBy tool and rule, the most frequent first:\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rest := tally.Ungrouped
	for i, g := range groups {
		if i >= shownGroups {
			rest += g.Calls
			continue
		}
		fmt.Fprintf(table, "  %d\t%s\t%s → %s\t%s\n", g.Calls, printable(called(g.Kind, g.Name)), g.Former, g.New, byRule(g.Rule))
	}
	_ = table.Flush() // out keeps the error
	if rest > 0 {
		fmt.Fprintf(out, "  and %d calls of others\n", rest)
	}
}

func (t *textReport) examples(ctx context.Context, out io.Writer, decision string, examples []replay.Difference) {
	if len(examples) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s, the latest:\n", newly[decision])
	for _, d := range examples {
		client := d.Client
		if client == "" {
			client = "an unnamed client"
		}
		fmt.Fprintf(out, "  %s  %s  %s through %s\n      was %s, would be %s %s\n", d.Time.UTC().Format(time.RFC3339), printable(called(d.Kind, d.Name)),
			printable(t.names.of(ctx, d.UserID)), printable(client), formerly(&d.Former), became[d.New.Decision], byRule(d.New.Rule))
	}
}

func called(kind, name string) string {
	if name == "" {
		return kind
	}
	return kind + ":" + name
}

func byRule(rule string) string {
	if rule == "" {
		return "because no rule grants it"
	}
	return fmt.Sprintf("by rule %q", printable(rule))
}

// became maps a decision to its effect on a call.
var became = map[string]string{"deny": "denied", "allow": "allowed", "ask": "held for approval"}

func formerly(d *replay.Decided) string {
	switch word := became[d.Decision]; {
	case d.Decision == "off":
		return "let through, because nothing was judged"
	case d.Rule != "":
		return fmt.Sprintf("%s by rule %q (revision %d)", word, printable(d.Rule), d.Revision)
	case d.PolicyID == "":
		return word + " without an active policy"
	default:
		return fmt.Sprintf("%s without a rule for it (revision %d)", word, d.Revision)
	}
}

// printable returns a text of callers in a form that can be written to a terminal: without sequences that move the
// cursor or change the look of other text, and not too long.
func printable(text string) string {
	const most = 200
	cut := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
	if runes := []rune(cut); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return cut
}

// userNames finds the email addresses of users.
type userNames struct {
	store        storage.Store
	organization string
	known        map[string]string
}

func newUserNames(store storage.Store, organization string) *userNames {
	return &userNames{store: store, organization: organization, known: make(map[string]string)}
}

// of returns the email of a user, or the id where there is none.
func (n *userNames) of(ctx context.Context, id string) string {
	if name, ok := n.known[id]; ok {
		return name
	}
	n.known[id] = id
	if u, err := n.store.User(ctx, n.organization, id); err == nil && u.Email != "" {
		n.known[id] = u.Email
	}
	return n.known[id]
}
