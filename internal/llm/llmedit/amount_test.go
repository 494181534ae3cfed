package llmedit

import "testing"

func TestAmounts(t *testing.T) {
	for text, n := range map[string]int64{"0": 0, "1": 1_000_000_000, "0.5": 500_000_000, "12.345678901": 12_345_678_901, "999999999.999999999": 999_999_999_999_999_999} {
		got, ok := parseAmount(text)
		shown, err := Amount(n).MarshalJSON()
		if !ok || got != n || string(shown) != text || err != nil {
			t.Errorf("%s: %d %v, shown %s", text, got, ok, shown)
		}
	}
}
