package metering

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/durward-gateway/durward/internal/strictjson"
)

//go:embed prices.json
var shipped []byte

// Prices is a table of model prices. It is never changed.
type Prices struct {
	currency string
	models   map[priced]Price
}

// anthropic is the kind of provider that charges for writes to its caches.
const anthropic = "anthropic"

// priced names the model that a price is for. Without a provider the price is for all providers of a kind.
type priced struct{ kind, provider, model string }

// Shipped returns the table that comes with the gateway.
var Shipped = sync.OnceValue(func() *Prices {
	p, err := parsePrices(shipped)
	if err != nil {
		panic("the shipped price table: " + err.Error()) // cannot happen: a test reads the table
	}
	return p
})

// Currency returns the currency code of all prices.
func (p *Prices) Currency() string { return p.currency }

// With reads a table and puts it over p: its prices win over p's for the same models. A table in another currency
// replaces p, because its costs cannot be added to p's. An error names line and column.
//
// The text is a JSON object with currency (three capitals), as_of (YYYY-MM-DD, for people) and models, a list of
// objects. Each has kind and model, optionally provider (the name of a single provider), input, output, and optionally
// cached_input, cache_write and cache_write_1h. A price is for a million tokens, as a decimal number or a string of
// one, with at most 9 decimals. Without cached_input, cached tokens cost the same as others. Without cache_write,
// tokens written to a cache cost the same as others. The kind anthropic is an exception, because its price list has the
// same factors for all models: 1.25 times the input price, and 2 times for an hour.
func (p *Prices) With(text []byte) (*Prices, error) {
	over, err := parsePrices(text)
	if err != nil {
		return nil, err
	}
	if over.currency == p.currency {
		all := maps.Clone(p.models)
		maps.Copy(all, over.models)
		over.models = all
	}
	return over, nil
}

// dated matches a model name with the date of a version.
var dated = regexp.MustCompile(`\A(.+?)(?:[-@](?:20[0-9]{6}|20[0-9]{2}-[0-9]{2}-[0-9]{2})|-latest)\z`)

// Of finds the price of a provider's model. Names are compared exactly. A version that is not in the table, with a name
// that ends in a date (-2024-08-06, -20240806, @20240806) or in -latest, costs the same as the name before it. A price
// for the one provider wins over a price for its kind.
func (p *Prices) Of(kind, provider, model string) (Price, bool) {
	if price, ok := p.models[priced{kind, provider, model}]; ok {
		return price, true
	}
	parts := dated.FindStringSubmatch(model)
	if parts != nil {
		if price, ok := p.models[priced{kind, provider, parts[1]}]; ok {
			return price, true
		}
	}
	if provider == "" {
		return Price{}, false
	}
	return p.Of(kind, "", model)
}

func parsePrices(text []byte) (*Prices, error) {
	table, err := strictjson.Parse(text, strictjson.Limits{})
	var syntax *strictjson.SyntaxError
	if errors.As(err, &syntax) {
		return nil, fmt.Errorf("%s: %s", position(text, syntax.Offset), syntax.Reason)
	}
	if err != nil {
		return nil, err
	}
	r := &priceReader{text: text}
	p := &Prices{models: make(map[priced]Price)}
	r.members(table, []string{"currency", "models"}, []string{"as_of"})
	p.currency = r.matching(table, "currency", currencyText, "three capital letters")
	r.matching(table, "as_of", dateText, "a date, YYYY-MM-DD")
	models, _ := table.Get("models")
	if models.Kind() != strictjson.Array {
		r.fail(models, "models must be a list")
	}
	for _, m := range models.Elems() {
		r.members(m, []string{"kind", "model", "input", "output"}, []string{"provider", "cached_input", "cache_write", "cache_write_1h"})
		of := priced{kind: r.name(m, "kind"), provider: r.name(m, "provider"), model: r.name(m, "model")}
		price := Price{Input: r.amount(m, "input"), Output: r.amount(m, "output")}
		price.Cached = price.Input
		if _, ok := m.Get("cached_input"); ok {
			price.Cached = r.amount(m, "cached_input")
		}
		price.Write, price.Write1h = price.Input, price.Input
		if of.kind == anthropic {
			price.Write, price.Write1h = price.Input+(price.Input+3)/4, 2*price.Input
		}
		if _, ok := m.Get("cache_write"); ok {
			price.Write = r.amount(m, "cache_write")
			price.Write1h = price.Write
		}
		if _, ok := m.Get("cache_write_1h"); ok {
			price.Write1h = r.amount(m, "cache_write_1h")
		}
		if _, twice := p.models[of]; twice {
			r.fail(m, "%s is in the list twice", of.model)
		}
		p.models[of] = price
	}
	return p, r.err
}

var (
	currencyText = regexp.MustCompile(`\A[A-Z]{3}\z`)
	dateText     = regexp.MustCompile(`\A20[0-9]{2}-[01][0-9]-[0-3][0-9]\z`)
	// priceText matches a price below a million: no sign, no exponent, no digits that would be rounded.
	priceText = regexp.MustCompile(`\A(0|[1-9][0-9]{0,5})(\.[0-9]{1,9})?\z`)
)

// priceReader keeps the first error in a table.
type priceReader struct {
	text []byte
	err  error
}

func (r *priceReader) fail(at strictjson.Value, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s", position(r.text, at.Offset()), fmt.Sprintf(format, args...))
	}
}

// position returns line and column of a byte, as editors count them.
func position(text []byte, offset int) string {
	before := string(text[:min(offset, len(text))])
	return fmt.Sprintf("line %d, column %d", strings.Count(before, "\n")+1, len(before)-strings.LastIndexByte(before, '\n'))
}

// members checks that v is an object with these members: a misspelt price would count as no price.
func (r *priceReader) members(v strictjson.Value, required, optional []string) {
	if v.Kind() != strictjson.Object {
		r.fail(v, "an object is expected")
		return
	}
	for _, m := range v.Members() {
		if !slices.Contains(required, m.Name) && !slices.Contains(optional, m.Name) {
			r.fail(m.Value, "unknown member %q", m.Name)
		}
	}
	for _, name := range required {
		if _, ok := v.Get(name); !ok {
			r.fail(v, "%s is missing", name)
		}
	}
}

// name returns a text that is not empty; "" when there is none.
func (r *priceReader) name(v strictjson.Value, member string) string {
	text, ok := v.Get(member)
	if ok && text.Str() == "" {
		r.fail(text, "%s must be a text that is not empty", member)
	}
	return text.Str()
}

func (r *priceReader) matching(v strictjson.Value, member string, pattern *regexp.Regexp, what string) string {
	text, ok := v.Get(member)
	if ok && !pattern.MatchString(text.Str()) {
		r.fail(text, "%s must be %s", member, what)
	}
	return text.Str()
}

func (r *priceReader) amount(v strictjson.Value, member string) int64 {
	value, ok := v.Get(member)
	if !ok {
		return 0
	}
	text := value.Num()
	if value.Kind() == strictjson.String {
		text = value.Str()
	}
	if !priceText.MatchString(text) {
		r.fail(value, "%s must be a decimal number below a million with at most 9 decimals", member)
		return 0
	}
	whole, decimals, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole+decimals+strings.Repeat("0", 9-len(decimals)), 10, 64)
	if err != nil {
		r.fail(value, "%s: %v", member, err)
	}
	return n
}
