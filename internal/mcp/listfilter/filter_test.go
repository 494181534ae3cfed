package listfilter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// visible keeps the entries that are not named after a secret.
func visible() (Keep, error) {
	return func(_ List, name string, _ []byte) bool { return !strings.Contains(name, "secret") }, nil
}

func tool(name string) string { return `{"name":"` + name + `"}` }

func TestMessage(t *testing.T) {
	answer := func(result string) string { return `{"jsonrpc":"2.0","id":1,"result":` + result + `}` }
	a, b, x := tool("a"), tool("b"), tool("secret")
	for _, tc := range []struct{ name, in, want string }{
		{"nothing to cut stays as it is", answer(` { "tools" : [ ` + a + ` , ` + b + ` ] , "n":1.50e2 } `), answer(` { "tools" : [ ` + a + ` , ` + b + ` ] , "n":1.50e2 } `)},
		{"first", answer(`{"tools":[` + x + `,` + a + `]}`), answer(`{"tools":[` + a + `]}`)},
		{"last", answer(`{"tools":[` + a + `,` + x + `]}`), answer(`{"tools":[` + a + `]}`)},
		{"middle", answer(`{"tools":[` + a + `, ` + x + `, ` + b + `]}`), answer(`{"tools":[` + a + `,` + b + `]}`)},
		{"runs", answer(`{"tools":[` + strings.Join([]string{x, x, a, x, x, b, x, x}, ",") + `]}`), answer(`{"tools":[` + a + `,` + b + `]}`)},
		{"all", answer(`{"tools":[` + x + `,` + x + `],"nextCursor":"c"}`), answer(`{"tools":[],"nextCursor":"c"}`)},
		{"none there", answer(`{"tools":[]}`), answer(`{"tools":[]}`)},
		{"resources", answer(`{"resources":[{"uri":"a"},{"uri":"secret"}]}`), answer(`{"resources":[{"uri":"a"}]}`)},
		{"templates", answer(`{"resourceTemplates":[{"uriTemplate":"secret{x}"},{"uriTemplate":"a{x}"}]}`), answer(`{"resourceTemplates":[{"uriTemplate":"a{x}"}]}`)},
		{"prompts", answer(`{"prompts":[` + x + `]}`), answer(`{"prompts":[]}`)},
		{"tasks", answer(`{"tasks":[{"taskId":"secret"},{"taskId":"1","status":"working"}]}`), answer(`{"tasks":[{"taskId":"1","status":"working"}]}`)},
		{"several lists", answer(`{"prompts":[` + x + `],"tools":[` + x + `]}`), answer(`{"prompts":[],"tools":[]}`)},
		{"unknown members and numbers stay", answer(`{"x":{"tools":[` + x + `]},"tools":[` + x + `,{"name":"a","n":1.0e+02,"é":"\u00e9"}],"ttlMs":300000.0}`),
			answer(`{"x":{"tools":[` + x + `]},"tools":[{"name":"a","n":1.0e+02,"é":"\u00e9"}],"ttlMs":300000.0}`)},
		{"escaped names", answer(`{"tool\u0073":[{"n\u0061me":"s\u0065cret"},` + a + `]}`), answer(`{"tool\u0073":[` + a + `]}`)},
		{"cacheScope", answer(`{"cacheScope":"public","tools":[` + x + `]}`), answer(`{"cacheScope":"private","tools":[]}`)},
		{"cacheScope behind", answer(`{"tools":[` + a + `],"cacheScope":"public"}`), answer(`{"tools":[` + a + `],"cacheScope":"private"}`)},
		{"cacheScope is private already", answer(`{"tools":[` + a + `],"cacheScope":"private"}`), answer(`{"tools":[` + a + `],"cacheScope":"private"}`)},
		{"cacheScope of another answer", answer(`{"contents":[],"cacheScope":"public"}`), answer(`{"contents":[],"cacheScope":"public"}`)},
		{"a batch", `[` + answer(`{"tools":[`+x+`]}`) + `,` + answer(`{"content":[]}`) + `,` + answer(`{"tools":[`+x+`,`+a+`]}`) + `]`,
			`[` + answer(`{"tools":[]}`) + `,` + answer(`{"content":[]}`) + `,` + answer(`{"tools":[`+a+`]}`) + `]`},
		{"an error", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"data":{"tools":[` + x + `]}}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"data":{"tools":[` + x + `]}}}`},
		{"a request of the server", `{"method":"sampling/createMessage","params":{"tools":[` + x + `]}}`, `{"method":"sampling/createMessage","params":{"tools":[` + x + `]}}`},
		{"entries that are none", answer(`{"tools":[1,null,[],{},{"name":1},{"title":"a"},` + a + `]}`), answer(`{"tools":[` + a + `]}`)},
		{"two names for two readers", answer(`{"tools":[{"name":"a","Name":"secret"},{"NAME":"secret","name":"b"},` + a + `]}`), answer(`{"tools":[` + a + `]}`)},
		{"a name for readers that fold case beside NUL", answer(`{"tools":[{"NAME":"secret","\u0000":"a"},` + a + `]}`), answer(`{"tools":[` + a + `]}`)},
		{"no JSON", "/mcp/demo?sessionId=abc", "/mcp/demo?sessionId=abc"},
		{"other values", `"tools"`, `"tools"`},
		{"no list, and not strict", `{"a":1,"a":"\ud800"}`, `{"a":1,"a":"\ud800"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := (&Filter{View: visible}).Message([]byte(tc.in))
			if err != nil || string(got) != tc.want {
				t.Errorf("%v\n got %s\nwant %s", err, got, tc.want)
			}
			if again, err := (&Filter{View: visible}).Message(got); err != nil || !bytes.Equal(again, got) {
				t.Errorf("filtered twice: %v %s", err, again)
			}
		})
	}
}

// TestUnreadable checks that a text that only some readers of JSON would take for a list is shown to none.
func TestUnreadable(t *testing.T) {
	x := tool("secret")
	for _, in := range []string{
		`{"result":{"tools":[],"tools":[` + x + `]}}`, `{"result":{},"result":{"tools":[` + x + `]}}`, `{"result":{"Tools":[` + x + `]}}`,
		`{"Result":{"tools":[` + x + `]}}`, `{"result":{"tool\u017f":[` + x + `]}}`, "{\"result\":{\"tool\xc5\xbf\":[" + x + `]}}`,
		`{"result":{"tools":{"0":` + x + `}}}`, `{"result":{"tools":[` + x + `]}} x`, "\xef\xbb\xbf" + `{"result":{"tools":[` + x + `]}}`,
		`{"result":{"tools":[` + x + `]`, `{"result":{"\u0074ools":[` + x + `],"a":"\ud800"}}`, `{"result":{"tools":[{"name":"secret","x":01}]}}`,
		"{\x00\"\x00r", `[[{"result":{"tools":[` + x + `]}}]`,
	} {
		if got, err := (&Filter{View: visible}).Message([]byte(in)); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	away := errors.New("away")
	filter := &Filter{View: func() (Keep, error) { return nil, away }}
	if _, err := filter.Message([]byte(`{"result":{"tools":[` + x + `]}}`)); !errors.Is(err, away) {
		t.Errorf("without a view: %v", err)
	}
	if got, err := filter.Message([]byte(`{"result":{"content":[]}}`)); err != nil || string(got) != `{"result":{"content":[]}}` {
		t.Errorf("a view was asked for nothing: %q %v", got, err)
	}
}

// TestStray: in the answer to something else, a list as servers write it is filtered, and nothing else is touched.
func TestStray(t *testing.T) {
	asked := 0
	filter := &Filter{Stray: true, View: func() (Keep, error) { asked++; return visible() }}
	x, a := tool("secret"), tool("a")
	for in, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + x + `,` + a + `]}}`:  `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + a + `]}}`,
		`[{"id":1,"result":{"prompts":[` + x + `]}}]`:                        `[{"id":1,"result":{"prompts":[]}}]`,
		`{"id":1,"result":{"content":[{"text":"\ud800 \"tools\""}]}}`:        `{"id":1,"result":{"content":[{"text":"\ud800 \"tools\""}]}}`,
		`{"id":1,"result":{"structuredContent":{"tools":[1]},"content":[]}}`: `{"id":1,"result":{"structuredContent":{"tools":[1]},"content":[]}}`,
		`{"id":1,"result":{"tools":{"a":1}}}`:                                `{"id":1,"result":{"tools":{"a":1}}}`,
	} {
		if got, err := filter.Message([]byte(in)); err != nil || string(got) != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
	}
	asked = 0
	if _, err := filter.Message([]byte(`{"id":1,"result":{"content":[]}}`)); err != nil || asked != 0 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	away := errors.New("away")
	filter.View = func() (Keep, error) { return nil, away }
	if _, err := filter.Message([]byte(`{"id":1,"result":{"tools":[` + x + `]}}`)); !errors.Is(err, away) {
		t.Errorf("without a view: %v", err)
	}
}

// TestM11StrayUnreadable: where a list is named, what readers of JSON do not agree on is refused, as in the answer to a list.
func TestM11StrayUnreadable(t *testing.T) {
	x := tool("secret")
	for _, in := range []string{
		`{"id":1,"result":{"tools":[` + x + `],"a":"\ud800"}}`, "{\"id\":1,\"result\":{\"tools\":[" + x + "],\"a\":\"\xff\"}}", `{"id":1,"result":{"tools":[],"tools":[` + x + `]}}`,
		`{"id":1,"result":{"tools":[` + x + `],"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}}`, `{"id":1,"result":{"tools":[` + x + `]}} x`, `"tools" and no JSON`,
		`{"id":1,"result":{"prompts":1,"tools":[` + x + `]}}`, `{"id":1,"result":{"tools":[` + x + `],"Prompts":[]}}`,
	} {
		if got, err := (&Filter{Stray: true, View: visible}).Message([]byte(in)); !errors.Is(err, ErrUnreadable) {
			t.Errorf("M11 %.80q: %.80q, %v", in, got, err)
		}
	}
}

// TestM11Cursors: what tells the name of a list's last entry is replaced, of lists alone.
func TestM11Cursors(t *testing.T) {
	filter := &Filter{View: visible, Cursor: func(list List, cursor string) (string, error) {
		if cursor == "long" {
			return "", ErrUnreadable
		}
		return fmt.Sprint("sealed-", list, "-", len(cursor)), nil
	}}
	for in, want := range map[string]string{
		`{"result":{"tools":[{"name":"secret"}],"nextCursor":"secret"}}`:                        `{"result":{"tools":[],"nextCursor":"sealed-1-6"}}`,
		`{"result":{"nextCursor":"s\u0065cret","prompts":[{"name":"secret"},{"name":"a"}]}}`:    `{"result":{"nextCursor":"sealed-4-6","prompts":[{"name":"a"}]}}`,
		`[{"result":{"tools":[],"nextCursor":"x"}},{"result":{"tasks":[],"nextCursor":"yy"}}]`:  `[{"result":{"tools":[],"nextCursor":"sealed-1-1"}},{"result":{"tasks":[],"nextCursor":"sealed-5-2"}}]`,
		`{"result":{"tools":[],"nextCursor":""}}`:                                               `{"result":{"tools":[],"nextCursor":""}}`,
		`{"result":{"tools":[],"nextCursor":null}}`:                                             `{"result":{"tools":[],"nextCursor":null}}`,
		`{"result":{"messages":[],"nextCursor":"x"}}`:                                           `{"result":{"messages":[],"nextCursor":"x"}}`,
		`{"result":{"cacheScope":"public","nextCursor":"x","tools":[{"name":"secret"}],"n":1}}`: `{"result":{"cacheScope":"private","nextCursor":"sealed-1-1","tools":[],"n":1}}`,
	} {
		if got, err := filter.Message([]byte(in)); err != nil || string(got) != want {
			t.Errorf("M11 %v\n got %s\nwant %s", err, got, want)
		}
	}
	for _, in := range []string{`{"result":{"tools":[],"nextCursor":"long"}}`, `{"result":{"tools":[],"NextCursor":"secret"}}`, `{"result":{"tools":[],"nextCursor":["secret"]}}`} {
		if got, err := filter.Message([]byte(in)); !errors.Is(err, ErrUnreadable) {
			t.Errorf("M11 %s: %s, %v", in, got, err)
		}
	}
}

// TestPrivate: from 2026-07-28 on, a filtered list that does not say whose it is would be everybody's.
func TestPrivate(t *testing.T) {
	for in, want := range map[string]string{
		`{"result": {"tools":[{"name":"secret"}],"ttlMs":1}}`:   `{"result": {"cacheScope":"private","tools":[],"ttlMs":1}}`,
		`{"result":{"tools":[],"cacheScope":"public"}}`:         `{"result":{"tools":[],"cacheScope":"private"}}`,
		`{"result":{"tools":[],"cacheScope":"private"}}`:        `{"result":{"tools":[],"cacheScope":"private"}}`,
		`{"result":{"content":[]}}`:                             `{"result":{"content":[]}}`,
		`{"result":{"nextCursor":"x","prompts":[]}}`:            `{"result":{"cacheScope":"private","nextCursor":"x","prompts":[]}}`,
		`[{"result":{"tools":[]}},{"result":{"resources":[]}}]`: `[{"result":{"cacheScope":"private","tools":[]}},{"result":{"cacheScope":"private","resources":[]}}]`,
	} {
		if got, err := (&Filter{View: visible, Private: true}).Message([]byte(in)); err != nil || string(got) != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
	}
}

// TestM22News: news of a resource that its reader may not see are dropped, wherever they come.
func TestM22News(t *testing.T) {
	news := func(uri string) string {
		return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
	}
	other := `{"jsonrpc":"2.0","method":"notifications/message","params":{"uri":"secret","updated":1}}`
	for in, want := range map[string]string{
		news("a"): news("a"), news("secret"): "", news("s\u0065cret"): "", other: other,
		`{"params":{"uri":"secret"},"method":"notifications\/resources\/updated"}`:                                                 "",
		`{"method":"notifications/resources/updated"}`:                                                                             "",
		`[` + news("secret") + `,` + news("a") + `,` + other + `]`:                                                                 `[` + news("a") + `,` + other + `]`,
		`[` + other + `, ` + news("secret") + `]`:                                                                                  `[` + other + `]`,
		`[{"result":{"tools":[{"name":"secret"}]}}, ` + news("secret") + `,{"result":{"tools":[{"name":"secret"},{"name":"a"}]}}]`: `[{"result":{"tools":[]}},{"result":{"tools":[{"name":"a"}]}}]`,
		`[` + news("secret") + `,{"result":{"tools":[{"name":"secret"},{"name":"a"}]}}]`:                                           `[{"result":{"tools":[{"name":"a"}]}}]`,
	} {
		for _, stray := range []bool{false, true} {
			if got, err := (&Filter{View: visible, Stray: stray}).Message([]byte(in)); err != nil || string(got) != want {
				t.Errorf("M22 %v\n got %s\nwant %s", err, got, want)
			}
		}
	}
	stream, err := io.ReadAll((&Filter{View: visible, Stray: true}).NewReader(strings.NewReader("id: 1\ndata: "+news("secret")+"\n\nid: 2\ndata: "+news("a")+"\n\n"), 1<<16))
	if want := "id: 1\n\nid: 2\ndata: " + news("a") + "\n\n"; err != nil || string(stream) != want {
		t.Errorf("M22 %q, %v", stream, err)
	}
}

func TestCreated(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC) }
	plain := func(ids ...string) (tasks []Task) {
		for _, id := range ids {
			tasks = append(tasks, Task{ID: id, TTL: NoTTL})
		}
		return tasks
	}
	for in, want := range map[string][]Task{
		`{"result":{"task":{"status":"working","taskId":"t-\u0031"}}}`:                                         plain("t-1"),
		`{"result":{"resultType":"task","taskId":"t2"}}`:                                                       plain("t2"),
		`{"result":{"taskId":"t3","resultType":"task"}}`:                                                       plain("t3"),
		`[{"result":{"task":{"taskId":"a"}}},{"result":{"task":{"taskId":"b"}}}]`:                              plain("a", "b"),
		`{"result":{"taskId":"t4"}}`:                                                                           nil,
		`{"result":{"resultType":"complete","taskId":"t4"}}`:                                                   nil,
		`{"result":{"resultType":"task"}}`:                                                                     nil,
		`{"result":{"task":"t5"}}`:                                                                             nil,
		`{"params":{"task":{"taskId":"t6"}}}`:                                                                  nil,
		`{"result":{"task":{"taskId":"t7"}}`:                                                                   nil,
		`{"result":{"task":{"taskId":"t","ttl":60000,"createdAt":"2026-01-02T03:00:00Z"}}}`:                    {{"t", at(3), time.Minute}},
		`{"result":{"resultType":"task","createdAt":"2026-01-02T03:00:00+01:00","ttlMs":1500.5,"taskId":"t"}}`: {{"t", at(2), 1500*time.Millisecond + 500*time.Microsecond}},
		`{"result":{"task":{"taskId":"t","ttl":null,"createdAt":"yesterday"}}}`:                                plain("t"),
		`{"result":{"task":{"taskId":"t","ttl":"60000","createdAt":5}}}`:                                       plain("t"),
		`{"result":{"task":{"taskId":"t","ttl":-1}}}`:                                                          plain("t"),
		`{"result":{"task":{"taskId":"t","ttl":0}}}`:                                                           {{"t", time.Time{}, 0}},
		`{"result":{"task":{"taskId":"t","ttl":1e300}},"params":{"taskId":"u"}}`:                               {{"t", time.Time{}, math.MaxInt64}},
		`{"result":{"task":{"taskId":"t","ttl":9223372036854}}}`:                                               {{"t", time.Time{}, math.MaxInt64}},
		`{"result":{"task":{"taskId":"t","ttl":1e400}}}`:                                                       {{"t", time.Time{}, math.MaxInt64}},
	} {
		var got []Task
		filter := &Filter{View: visible, Created: func(made Task) { got = append(got, made) }}
		if _, err := filter.Message([]byte(in)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", in, diff)
		}
	}
}

func TestReader(t *testing.T) {
	list := `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + tool("secret") + `,` + tool("a") + `]}}`
	kept := `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + tool("a") + `]}}`
	broken := `{"result":{"tools":[` + tool("secret") + `],"tools":1}}`
	pretty := "{\n\"result\":{\n\"tools\":[" + tool("secret") + "]\n}}"
	lines := func(s string) string { return "data: " + strings.ReplaceAll(s, "\n", "\ndata: ") + "\n" }
	for _, tc := range []struct{ name, in, want, withRefusal string }{
		{name: "an event", in: "id: 7\nevent: message\ndata: " + list + "\nretry: 10\n\n", want: "id: 7\nevent: message\ndata: " + kept + "\nretry: 10\n\n"},
		{name: "between others", in: ": hello\n\nid: 1\ndata:\n\ndata:" + list + "\n\ndata: x\n\n", want: ": hello\n\nid: 1\ndata:\n\ndata: " + kept + "\n\ndata: x\n\n"},
		{name: "other line ends", in: "data: " + list + "\r\n\r\ndata: " + list + "\r\rdata: x\r\n\r\n", want: "data: " + kept + "\n\ndata: " + kept + "\n\ndata: x\r\n\r\n"},
		{name: "several lines", in: lines(pretty) + "\n", want: lines(strings.Replace(pretty, tool("secret"), "", 1)) + "\n"},
		{name: "byte order mark", in: "\xef\xbb\xbfdata: " + list + "\n\n", want: "data: " + kept + "\n\n"},
		{name: "cut off", in: "data: " + list, want: "data: " + kept + "\n"},
		{name: "unreadable", in: "id: 3\ndata: " + broken + "\n\ndata: x\n\n", want: "id: 3\n\ndata: x\n\n", withRefusal: "id: 3\ndata: {}\n\ndata: x\n\n"},
		{name: "nothing to do", in: "retry: 5\r\ndata: {\"method\":\"ping\"}\r\n\r\n:\n\n", want: "retry: 5\r\ndata: {\"method\":\"ping\"}\r\n\r\n:\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, chunk := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
				got, err := io.ReadAll((&Filter{View: visible}).NewReader(chunk(strings.NewReader(tc.in)), 1<<16))
				if err != nil || string(got) != tc.want {
					t.Errorf("%v\n got %q\nwant %q", err, got, tc.want)
				}
			}
			if tc.withRefusal == "" {
				return
			}
			got, err := io.ReadAll((&Filter{View: visible, Refusal: func() []byte { return []byte("{}") }}).NewReader(strings.NewReader(tc.in), 1<<16))
			if err != nil || string(got) != tc.withRefusal {
				t.Errorf("%v\n got %q\nwant %q", err, got, tc.withRefusal)
			}
		})
	}
}

// TestBounds is the filter's side of M14: 10,000 tools and a description of 1 MiB are read in one pass.
func TestBounds(t *testing.T) {
	var list strings.Builder
	list.WriteString(`{"jsonrpc":"2.0","id":1,"result":{"tools":[`)
	for i := range 10_000 {
		if i > 0 {
			list.WriteByte(',')
		}
		name := fmt.Sprintf("tool-%d", i)
		if i%2 == 0 {
			name = "secret" + name
		}
		list.WriteString(tool(name))
	}
	list.WriteString(`,{"name":"long","description":"` + strings.Repeat("\U000E0041<IMPORTANT>", 1<<16) + `"}]}}`)
	got, err := (&Filter{View: visible}).Message([]byte(list.String()))
	var read struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err != nil || json.Unmarshal(got, &read) != nil || len(read.Result.Tools) != 5_001 || strings.Contains(string(got), "secret") {
		t.Errorf("M14: %v, %d tools", err, len(read.Result.Tools))
	}
}
