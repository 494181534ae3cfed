package llmedit

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/internal/api/schema"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// amountDigits is the number of decimals of an amount.
const amountDigits = 9

// Amount is an amount of money in billionths of the price table's currency unit, shown as a decimal number.
type Amount int64

// MarshalJSON implements json.Marshaler.
func (a Amount) MarshalJSON() ([]byte, error) {
	text := strconv.FormatInt(int64(a), 10)
	if missing := amountDigits + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	at := len(text) - amountDigits
	return []byte(strings.TrimSuffix(strings.TrimRight(text[:at]+"."+text[at:], "0"), ".")), nil
}

// JSONSchema implements schema.Described.
func (Amount) JSONSchema() *schema.Schema { return &schema.Schema{Type: schema.Types{schema.Number}} }

// amountText is the pattern of an amount below a billion: no sign, no exponent, no digit that would be rounded.
var amountText = regexp.MustCompile(`\A(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?\z`)

// amountField reads an amount, a number or a text such as "12.50", in billionths.
func amountField(o *validate.Object, name string, flags validate.Flags) validate.Field[int64] {
	field := o.Value(name, flags)
	out := validate.Field[int64]{Present: field.Present, Null: field.Null}
	if !field.Set() || o.Wrong(name) {
		return out
	}
	text := field.Value.Num()
	if field.Value.Kind() == strictjson.String {
		text = field.Value.Str()
	}
	amount, ok := parseAmount(text)
	if !ok {
		o.Report(validate.ValueError, "Value error, an amount is a decimal number below a billion with at most 9 decimals", name)
	}
	out.Value = amount
	return out
}

func parseAmount(text string) (int64, bool) {
	if !amountText.MatchString(text) {
		return 0, false
	}
	whole, decimals, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole+decimals+strings.Repeat("0", amountDigits-len(decimals)), 10, 64)
	return n, err == nil
}
