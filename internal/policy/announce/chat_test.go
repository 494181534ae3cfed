package announce

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// hostile holds texts that try to be a link, a mention, a card, another line or nothing.
var hostile = []string{
	"<https://evil.example|Open the page>", "<!channel>", "<@U123>", "[Open the page](https://evil.example)", "<at>everyone</at>", "*bold* _it_ ~x~ `c`",
	"a\nWaits for: nobody", "\u202egnp.exe", `"},{"type":"actions"`, "&lt;b&gt;", "x\r\nBcc: eve@evil.example", strings.Repeat("A", 5000), "${card}", "\x00\u200b",
}

func toldWith(text string) *Told {
	return &Told{
		facts: facts{ID: "1", Status: "pending", Tool: text, Client: text, Approvers: [][]string{{"group:" + text}}, CreatedAt: noon, ExpiresAt: noon.Add(10 * time.Minute)},
		User:  text, Agent: text, Server: text, URL: public + "/approvals/1",
	}
}

// walk calls f with each object in a message.
func walk(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(v)
		for _, inner := range v {
			walk(inner, f)
		}
	case []any:
		for _, inner := range v {
			walk(inner, f)
		}
	}
}

func decoded(t *testing.T, message object) (out map[string]any) {
	t.Helper()
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSlack checks that texts of others are plain text alone, and that everything that Slack reads is the gateway's own.
func TestSlack(t *testing.T) {
	for _, text := range hostile {
		told := toldWith(text)
		message := decoded(t, slackMessage(storage.EventHeld, told))
		plain, markup := 0, []string{}
		walk(message, func(o map[string]any) {
			content, _ := o["text"].(string)
			switch o["type"] {
			case "plain_text":
				plain++
				if strings.ContainsAny(content, "\n\r\u202e\x00") || len(content) > 2000 || o["emoji"] != false {
					t.Errorf("%q", content)
				}
			case "mrkdwn":
				markup = append(markup, content)
			}
		})
		if plain != 6 || len(markup) != 1 || markup[0] != "<"+told.URL+"|Open the page>" || message["text"] != "A tool call waits for approval" || len(message["blocks"].([]any)) != 3 {
			t.Errorf("%q: %v", text, message)
		}
	}
}

// TestTeams checks that texts of others are runs of text alone, which are no Markdown, and that nothing is mentioned.
func TestTeams(t *testing.T) {
	for _, text := range hostile {
		told := toldWith(text)
		message := decoded(t, teamsMessage(storage.EventHeld, told))
		runs, blocks, actions := 0, []any{}, 0
		walk(message, func(o map[string]any) {
			switch o["type"] {
			case "TextRun":
				runs++
				if content := o["text"].(string); strings.ContainsAny(content, "\n\r\u202e\x00") || len(content) > 2000 {
					t.Errorf("%q", content)
				}
			case "TextBlock":
				blocks = append(blocks, o["text"])
			case "Action.OpenUrl":
				if actions++; o["url"] != told.URL {
					t.Errorf("%v", o)
				}
			case "message", "AdaptiveCard", "RichTextBlock":
			default:
				if o["contentType"] == nil {
					t.Errorf("%v", o)
				}
			}
			if o["msteams"] != nil {
				t.Errorf("%v", o)
			}
		})
		if runs != 10 || actions != 1 || len(blocks) != 1 || blocks[0] != "A tool call waits for approval" {
			t.Errorf("%q: %v", text, message)
		}
	}
}

// TestTitles checks that each end of a call has a title of its own, and that a decision has its author.
func TestTitles(t *testing.T) {
	told := toldWith("x")
	told.DecidedBy = "bob"
	for event, want := range map[string]string{storage.EventHeld: "waits", storage.EventExpired: "in time", storage.EventDecided: "was denied"} {
		if got := titleOf(event, told); !strings.Contains(got, want) {
			t.Errorf("%s: %s", event, got)
		}
	}
	told.Status = "approved"
	if got := titleOf(storage.EventDecided, told); !strings.Contains(got, "was approved") {
		t.Error(got)
	}
	lines := linesOf(told)
	if last := lines[len(lines)-1]; last != (line{"Decided by", "bob"}) {
		t.Errorf("%v", lines)
	}
	told = toldWith("")
	told.User, told.Client, told.Approvers = "alice", "x", nil
	lines = linesOf(told)
	if lines[3].value != "a client that is not registered (x)" || lines[4] != (line{"Waits for", "alice"}) {
		t.Errorf("%v", lines)
	}
}
