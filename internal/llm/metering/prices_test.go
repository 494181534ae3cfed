package metering

import (
	"math"
	"strings"
	"testing"
)

func TestCost(t *testing.T) {
	const dollar = 1_000_000_000
	for name, c := range map[string]struct {
		price Price
		used  Tokens
		want  int64
	}{
		"nothing":           {Price{Input: 1, Cached: 1, Output: 1}, Tokens{}, 0},
		"free":              {Price{}, Tokens{Input: 1e9, Output: 1e9}, 0},
		"a million of each": {Price{Input: 3 * dollar, Output: 15 * dollar}, Tokens{Input: 1e6, Output: 1e6}, 18 * dollar},
		"some of it cached": {Price{Input: 3 * dollar, Cached: dollar, Output: 15 * dollar}, Tokens{Input: 1000, Cached: 400, Output: 10}, 600*3000 + 400*1000 + 10*15000},
		"some of it written": {Price{Input: 3 * dollar, Cached: dollar, Output: 15 * dollar, Write: 4 * dollar, Write1h: 6 * dollar}, Tokens{Input: 1000, Cached: 400, Written: 300, Written1h: 100, Output: 10},
			300*3000 + 400*1000 + 200*4000 + 100*6000 + 10*15000},
		"more written than there are": {Price{Input: 100 * dollar, Cached: dollar, Write: 2 * dollar, Write1h: 3 * dollar}, Tokens{Input: 1e6, Cached: 400_000, Written: math.MaxInt64, Written1h: math.MaxInt64}, 400_000*1000 + 600_000*3000},
		"rounded up, once":            {Price{Input: 1, Cached: 1, Output: 1}, Tokens{Input: 2, Cached: 1, Output: 1}, 1},
		"just whole":                  {Price{Input: 1}, Tokens{Input: 1e6}, 1},
		"just more":                   {Price{Input: 1}, Tokens{Input: 1e6 + 1}, 2},
		"more cached than there are":  {Price{Input: 100 * dollar, Cached: dollar}, Tokens{Input: 1e6, Cached: math.MaxInt64}, dollar},
		"negative numbers are none":   {Price{Input: dollar, Output: dollar}, Tokens{Input: -1, Cached: -5, Output: math.MinInt64}, 0},
		"largest numbers do not wrap": {Price{Input: math.MaxInt64 >> 13, Cached: math.MaxInt64 >> 13, Output: math.MaxInt64 >> 13}, Tokens{Input: math.MaxInt64, Output: math.MaxInt64, Cached: math.MaxInt64}, maxCost},
		"just not to be divided":      {Price{Output: perTokens << 24}, Tokens{Output: maxTokens}, maxCost},
		"a million is the most":       {Price{Output: 999_999 * dollar}, Tokens{Output: 2e6}, maxCost},
	} {
		if got := c.price.Cost(c.used); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if add(math.MaxInt64-1, 2) != math.MaxInt64 || add(1, 2) != 3 {
		t.Error("sums wrap")
	}
}

func TestShippedPrices(t *testing.T) {
	p := Shipped()
	if p.Currency() != "USD" || len(p.models) < 40 {
		t.Fatalf("%s, %d models", p.Currency(), len(p.models))
	}
	for of, price := range p.models {
		if of.provider != "" || price.Cached > price.Input || price.Input == 0 {
			t.Errorf("%+v: %+v", of, price)
		}
	}
}

// openaiPrice returns a price of a provider that charges the same for cache writes as for other input.
func openaiPrice(input, cached, output int64) Price {
	return Price{Input: input, Cached: cached, Output: output, Write: input, Write1h: input}
}

// anthropicPrice returns a price of Anthropic's list (W43): 1.25 times input for five minutes in the cache, 2 times for
// an hour.
func anthropicPrice(input, cached, output int64) Price {
	return Price{Input: input, Cached: cached, Output: output, Write: input * 5 / 4, Write1h: 2 * input}
}

// TestWritePrices covers W43: prices of cache writes can be given, and have Anthropic's factors where they are not.
func TestWritePrices(t *testing.T) {
	p, err := Shipped().With([]byte(`{"currency": "EUR", "models": [
		{"kind": "anthropic", "model": "list", "input": "3", "output": 15},
		{"kind": "anthropic", "model": "odd", "input": "0.000000001", "output": 15},
		{"kind": "anthropic", "model": "own", "input": "3", "cache_write": "3.10", "output": 15},
		{"kind": "anthropic", "model": "both", "input": "3", "cache_write": "3.10", "cache_write_1h": "4", "output": 15},
		{"kind": "openai", "model": "plain", "input": "3", "output": 15},
		{"kind": "openai", "model": "gpt-6", "input": "3", "cache_write": "3.75", "output": 15}
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string][3]int64{
		"list": {3_000_000_000, 3_750_000_000, 6_000_000_000}, "odd": {1, 2, 2}, "own": {3_000_000_000, 3_100_000_000, 3_100_000_000},
		"both": {3_000_000_000, 3_100_000_000, 4_000_000_000}, "plain": {3_000_000_000, 3_000_000_000, 3_000_000_000}, "gpt-6": {3_000_000_000, 3_750_000_000, 3_750_000_000},
	} {
		kind := "anthropic"
		if _, ok := p.Of(kind, "", model); !ok {
			kind = "openai"
		}
		if got, _ := p.Of(kind, "", model); got.Input != want[0] || got.Write != want[1] || got.Write1h != want[2] {
			t.Errorf("%s: %+v", model, got)
		}
	}
}

func TestPriceOfModel(t *testing.T) {
	p, err := Shipped().With([]byte(`{"currency": "USD", "as_of": "2026-01-01", "models": [
		{"kind": "openai", "model": "gpt-4o", "input": 1, "output": "2.5"},
		{"kind": "openai", "provider": "Ours", "model": "gpt-4o", "input": 0, "cached_input": 0, "output": 0},
		{"kind": "openai", "model": "m-latest", "input": "0.000000001", "output": "999999.999999999"}
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	const unit = 1_000_000_000
	for _, c := range []struct {
		kind, provider, model string
		want                  Price
		none                  bool
	}{
		{kind: "openai", provider: "OpenAI", model: "gpt-4o", want: openaiPrice(unit, unit, 2_500_000_000)},
		{kind: "openai", model: "gpt-4o", want: openaiPrice(unit, unit, 2_500_000_000)},
		{kind: "openai", provider: "Ours", model: "gpt-4o"},
		{kind: "openai", provider: "Ours", model: "gpt-4o-2024-08-06"}, // the price for the provider goes first
		{kind: "openai", provider: "OpenAI", model: "gpt-4o-2024-08-06", want: openaiPrice(unit, unit, 2_500_000_000)},
		{kind: "openai", provider: "OpenAI", model: "gpt-4o-2024-05-13", want: openaiPrice(5*unit, 5*unit, 15*unit)}, // the exact name goes first
		{kind: "openai", provider: "Ours", model: "gpt-4o-mini", want: openaiPrice(150_000_000, 75_000_000, 600_000_000)},
		{kind: "anthropic", model: "claude-sonnet-4-5-20250929", want: anthropicPrice(3*unit, 300_000_000, 15*unit)},
		{kind: "anthropic", model: "claude-sonnet-4-5@20250929", want: anthropicPrice(3*unit, 300_000_000, 15*unit)},
		{kind: "anthropic", model: "claude-3-5-sonnet-latest", want: anthropicPrice(3*unit, 300_000_000, 15*unit)},
		{kind: "openai", model: "m-latest", want: openaiPrice(1, 1, 999_999_999_999_999)},
		{kind: "openai", model: "m", none: true},
		{kind: "openai", model: "gpt-4o-audio", none: true}, // another model, whatever its name begins with
		{kind: "openai", model: "gpt-4o-1234", none: true},
		{kind: "openai", model: "GPT-4o", none: true},
		{kind: "openai", model: "-latest", none: true},
		{kind: "openai", model: "claude-sonnet-4-5", none: true},
		{kind: "", model: "gpt-4o", none: true},
	} {
		got, ok := p.Of(c.kind, c.provider, c.model)
		if got != c.want || ok == c.none {
			t.Errorf("%s/%s/%s: %+v, %v", c.kind, c.provider, c.model, got, ok)
		}
	}
	if _, ok := even.Of("openai", "", "gpt-4o"); ok || even.Currency() != "EUR" {
		t.Error("prices in another currency are mixed with those that ship")
	}
}

func TestPriceErrors(t *testing.T) {
	row := func(members string) string { return "{\"currency\": \"USD\",\n \"models\": [\n  {" + members + "}]}" }
	for text, want := range map[string]string{
		``:                                   "line 1, column 1: unexpected end of text",
		"{\n \"currency\": \"USD\",,":        "line 2, column 20: ",
		`[]`:                                 "line 1, column 1: an object is expected",
		`{"currency": "USD"}`:                "line 1, column 1: models is missing",
		`{"models": []}`:                     "currency is missing",
		`{"currency": "usd", "models": []}`:  "line 1, column 14: currency must be three capital letters",
		`{"currency": 1, "models": []}`:      "currency must be",
		`{"currency": "USD", "models": {}}`:  "line 1, column 31: models must be a list",
		`{"currency": "USD", "models": [1]}`: "line 1, column 32: an object is expected",
		`{"currency": "USD", "models": [], "modells": []}`:                                               `unknown member "modells"`,
		`{"currency": "USD", "models": [], "as_of": "soon"}`:                                             "as_of must be a date",
		`{"currency": "USD", "currency": "USD", "models": []}`:                                           "duplicate member",
		row(`"kind": "openai", "model": "m", "input": 1`):                                                "line 3, column 3: output is missing",
		row(`"kind": "openai", "model": "", "input": 1, "output": 1`):                                    "model must be a text",
		row(`"kind": 7, "model": "m", "input": 1, "output": 1`):                                          "line 3, column 12: kind must be a text",
		row(`"kind": "k", "provider": "", "model": "m","input":1,"output":1`):                            "provider must be a text",
		row(`"kind": "k", "model": "m", "input": -1, "output": 1`):                                       "input must be a decimal number",
		row(`"kind": "k", "model": "m", "input": 1e3, "output": 1`):                                      "input must be a decimal number",
		row(`"kind": "k", "model": "m", "input": 1000000, "output": 1`):                                  "input must be a decimal number",
		row(`"kind": "k", "model": "m", "input": 1, "output": "0.0000000001"`):                           "output must be a decimal number",
		row(`"kind": "k", "model": "m", "input": 1, "output": null`):                                     "output must be a decimal number",
		row(`"kind": "k", "model": "m", "input": 1, "output": 1, "cached": 1`):                           `unknown member "cached"`,
		row(`"kind": "k", "model": "m", "input": 1, "output": 1, "Input": 1`):                            `unknown member "Input"`,
		row(`"kind":"k","model":"m","input":1,"output":1,"cached_input":"x"`):                            "cached_input must be a decimal number",
		row(`"kind":"k","model":"m","input":1,"output":1},{"kind":"k","model":"m","input":1,"output":1`): "m is in the list twice",
	} {
		if _, err := Shipped().With([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

func FuzzPrices(f *testing.F) {
	f.Add(shipped)
	f.Add([]byte(`{"currency": "USD", "models": [{"kind": "k", "model": "m", "input": "1.5", "cached_input": 0, "output": 2}]}`))
	f.Add([]byte(`{"currency": "USD", "models": [{"kind": "k", "provider": "p", "model": "m", "input": 1e9, "output": -2}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Shipped().With(text)
		if err != nil {
			return
		}
		for of, price := range p.models {
			if min(price.Input, price.Cached, price.Output, price.Write, price.Write1h) < 0 || max(price.Input, price.Cached, price.Output) >= maxCost || of.kind == "" || of.model == "" {
				t.Errorf("%+v: %+v", of, price)
			}
			if price.Cost(Tokens{Input: maxTokens, Output: maxTokens, Cached: maxTokens / 3, Written: maxTokens / 3, Written1h: maxTokens / 9}) < 0 {
				t.Errorf("%+v: a negative cost", of)
			}
		}
	})
}
